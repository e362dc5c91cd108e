#include <algorithm>
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
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/option_checks.h"
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

// The values that main itself looks at, whatever the command.
struct SharedFlags {
  bool json = false;
  std::string config;
};

void AddCommand(CLI::App& program, Entry& entry, SharedFlags& shared) {
  entry.app =
      program.add_subcommand(entry.command->name(), entry.command->summary());
  entry.app->footer(absl::StrCat("Example:\n  ", entry.command->example()));
  entry.command->Define(*entry.app);
  if (entry.app->get_option_no_throw("--json") == nullptr) {
    entry.app->add_flag("--json", shared.json,
                        "Machine-readable output on stdout");
  }
  entry.app->add_option("--config", shared.config,
                        "Read options from this file; the command line wins");
  AddEnvironmentNames(*entry.app);
  CheckOptionValues(*entry.app);
}

using Arguments = std::vector<std::string>;

bool Contains(const Arguments& arguments, absl::string_view word) {
  return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
}

// The error in both forms, by what was typed: nothing is parsed yet.
int ReportUsage(const Arguments& arguments, const absl::Status& status) {
  const bool json =
      Contains(arguments, "--json") || Contains(arguments, "--json=true");
  Console(json).Error(status);
  return ExitCodeOf(status);
}

// CLI11 reports by exception; this is the one place that meets them.
// Returns the exit code, or -1 to go on.
int Parse(CLI::App& program, const Arguments& arguments) {
  try {
    // parse() takes the arguments from the back.
    program.parse(Arguments(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(program.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::fputs(VersionText().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string command =
        arguments.empty() ? "" : Printable(arguments[0]);
    if (program.get_subcommands().empty() && !command.empty() &&
        command[0] != '-') {
      return ReportUsage(arguments, UsageError(command, "is no command",
                                               "see `millrace --help`"));
    }
    return ReportUsage(
        arguments,
        UsageError(command.empty() ? "millrace" : command, error.what(),
                   absl::StrCat("see `millrace ", command,
                                command.empty() ? "" : " ", "--help`")));
  }
  return -1;
}

int RunCommand(Command& command, bool json) {
  Console console(json);
  absl::Status status = command.Run(console);
  console.Progress("");
  const absl::Status written = console.OutStatus();
  status.Update(written);
  if (status.ok()) {
    return 0;
  }
  if (status.code() == absl::StatusCode::kCancelled && Interrupts() > 0) {
    return kExitInterrupted;
  }
  // Nobody reads on: not worth a word, as in other programs.
  if (status != written || !absl::IsAborted(written)) {
    console.Error(status);
  }
  return ExitCodeOf(status);
}

int Main(int argc, char** argv) {
  HoldStandardStreams(argv);
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
  SharedFlags shared;
  for (Entry& entry : entries) {
    AddCommand(program, entry, shared);
  }
  Arguments arguments(argv + 1, argv + argc);
  if (const absl::Status status = AddConfiguredOptions(arguments);
      !status.ok()) {
    return ReportUsage(arguments, status);
  }
  if (const int code = Parse(program, arguments); code >= 0) {
    return code;
  }
  for (const Entry& entry : entries) {
    if (entry.app->parsed()) {
      return RunCommand(*entry.command, shared.json);
    }
  }
  return 2;
}

}  // namespace
}  // namespace millrace::cli

int main(int argc, char** argv) { return millrace::cli::Main(argc, argv); }
