#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/console.h"

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

// One command of the program: `millrace NAME ...`. One file per command.
// Made and run on the main thread, once.
class Command {
 public:
  virtual ~Command() = default;

  [[nodiscard]] virtual const char* name() const = 0;
  // One line for the list of commands.
  [[nodiscard]] virtual const char* summary() const = 0;
  // A command line that works, shown under --help.
  [[nodiscard]] virtual const char* example() const = 0;

  // The commands below this one, as `bench decode`, and names promised for
  // later versions. A command that has some is not run itself.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Command>> MakeParts()
      const {
    return {};
  }
  [[nodiscard]] virtual std::vector<std::string> LaterParts() const {
    return {};
  }

  // Adds options and positionals, bound to members. `--json`, `--config` and
  // the environment variables MILLRACE_OPTION_NAME are added by the caller.
  virtual void Define(CLI::App& app) = 0;

  // Validates and does the work. The result goes to console.out(), everything
  // else to stderr through the console. The status becomes the exit code:
  // UsageError 2, AnswerIsNo 3, InputError 4, anything else 1; kCancelled after
  // an interrupt 130.
  virtual absl::Status Run(Console& console) = 0;
};

}  // namespace millrace::cli
