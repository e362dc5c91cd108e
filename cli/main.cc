#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/version.h"

namespace millrace::cli {
namespace {

constexpr int kExitInterrupted = 130;

// --top-k can also be given as MILLRACE_TOP_K; the command line wins.
void AddEnvironmentNames(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.empty() || names[0] == "help" || names[0] == "config") {
      continue;
    }
    option->envname(absl::StrCat(
        "MILLRACE_",
        absl::AsciiStrToUpper(absl::StrReplaceAll(names[0], {{"-", "_"}}))));
  }
}

struct Entry {
  std::unique_ptr<Command> command;
  CLI::App* app = nullptr;
};

void AddCommand(CLI::App& program, Entry& entry, bool* json) {
  entry.app =
      program.add_subcommand(entry.command->name(), entry.command->summary());
  entry.app->footer(absl::StrCat("Example:\n  ", entry.command->example()));
  entry.command->Define(*entry.app);
  if (entry.app->get_option_no_throw("--json") == nullptr) {
    entry.app->add_flag("--json", *json, "Machine-readable output on stdout");
  }
  entry.app->set_config("--config", "", "Read options from this file");
  AddEnvironmentNames(*entry.app);
}

bool Contains(int argc, char** argv, absl::string_view word) {
  for (int i = 1; i < argc; ++i) {
    if (word == argv[i]) {
      return true;
    }
  }
  return false;
}

// CLI11 reports by exception; this is the one place that meets them.
// Returns the exit code, or -1 to go on.
int Parse(CLI::App& program, int argc, char** argv) {
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(program.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::fputs(VersionText().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    Console(Contains(argc, argv, "--json"))
        .Error(UsageError(
            argc > 1 ? Printable(argv[1]) : "millrace", error.what(),
            argc > 1
                ? absl::StrCat("see `millrace ", Printable(argv[1]), " --help`")
                : "see `millrace --help`"));
    return 2;
  }
  return -1;
}

int RunCommand(Command& command, bool json) {
  Console console(json);
  const absl::Status status = command.Run(console);
  console.Progress("");
  if (status.ok()) {
    return 0;
  }
  if (status.code() == absl::StatusCode::kCancelled && Interrupts() > 0) {
    return kExitInterrupted;
  }
  console.Error(status);
  return ExitCodeOf(status);
}

int Main(int argc, char** argv) {
  CatchInterrupts();
  SetFloatEnvironment();
  CLI::App program(
      "Serves language models that do not fit one machine: a pipeline of "
      "stages behind the OpenAI API.",
      "millrace");
  program.require_subcommand(1);
  program.set_version_flag("--version", VersionText());
  std::vector<Entry> entries;
  for (std::unique_ptr<Command>& command : MakeCommands()) {
    entries.push_back(Entry{std::move(command)});
  }
  bool json = false;
  for (Entry& entry : entries) {
    AddCommand(program, entry, &json);
  }
  if (const int code = Parse(program, argc, argv); code >= 0) {
    return code;
  }
  for (const Entry& entry : entries) {
    if (entry.app->parsed()) {
      return RunCommand(*entry.command, json);
    }
  }
  return 2;
}

}  // namespace
}  // namespace millrace::cli

int main(int argc, char** argv) { return millrace::cli::Main(argc, argv); }
