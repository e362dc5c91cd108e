#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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

// --top-k can also be given as MILLRACE_TOP_K; the command line wins.
void AddEnvironmentNames(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.empty() || names[0] == "help" || names[0] == "config") {
      continue;
    }
    option->envname(EnvironmentName(names[0]));
  }
}

struct Entry {
  std::unique_ptr<Command> command;
  CLI::App* app = nullptr;
  std::vector<Entry> parts;
};

// The values that main itself looks at, whatever the command.
struct SharedFlags {
  bool json = false;
  std::string config;
};

void AddCommand(CLI::App& parent, Entry& entry, SharedFlags& shared) {
  entry.app =
      parent.add_subcommand(entry.command->name(), entry.command->summary());
  entry.app->footer(absl::StrCat("Example:\n  ", entry.command->example()));
  for (std::unique_ptr<Command>& part : entry.command->MakeParts()) {
    entry.parts.push_back(Entry{std::move(part), nullptr, {}});
  }
  if (!entry.parts.empty()) {
    entry.app->require_subcommand(1);
    for (Entry& part : entry.parts) {
      AddCommand(*entry.app, part, shared);
    }
    return;
  }
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

// Commands that are promised for later versions.
constexpr absl::string_view kLaterCommands[] = {"cluster", "import", "keys",
                                                "pull", "top"};

// The entry whose command was recognized; null where none was.
const Entry* ParsedOf(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (entry.app->parsed()) {
      return &entry;
    }
  }
  return nullptr;
}

// What people are told where no command was recognized behind `parent`
// ("millrace", "bench"): `word` is what stands in its place, empty for nothing.
template <typename Later>
absl::Status NoCommand(const std::string& parent, const std::string& word,
                       const Later& later) {
  const std::string help = absl::StrCat(
      "see `millrace ", parent == "millrace" ? "" : absl::StrCat(parent, " "),
      "--help`");
  if (word.empty() || absl::StartsWith(word, "-")) {
    return UsageError(parent, "a command is missing", help);
  }
  const bool promised =
      std::find(std::begin(later), std::end(later), word) != std::end(later);
  return UsageError(
      parent == "millrace" ? Printable(word)
                           : absl::StrCat(parent, " ", Printable(word)),
      promised ? "is not in this version" : "is no command", help);
}

// What people are told of arguments that do not parse.
absl::Status ParseFailure(const std::vector<Entry>& entries,
                          const CLI::ParseError& error, const Arguments& typed,
                          const Arguments& configured) {
  const auto word_at = [&](size_t i) {
    return i < typed.size() ? typed[i] : std::string();
  };
  const Entry* entry = ParsedOf(entries);
  if (entry == nullptr) {
    return NoCommand("millrace", word_at(0), kLaterCommands);
  }
  std::string command = entry->command->name();
  if (!entry->parts.empty()) {
    const Entry* part = ParsedOf(entry->parts);
    if (part == nullptr) {
      return NoCommand(command, word_at(1), entry->command->LaterParts());
    }
    absl::StrAppend(&command, " ", part->command->name());
  }
  const std::string origin = OriginOf(error.what(), typed, configured);
  const std::string what = origin.empty()
                               ? error.what()
                               : absl::StrCat(error.what(), " (it stands in ",
                                              Printable(origin), ")");
  return UsageError(command, what,
                    absl::StrCat("see `millrace ", command, " --help`"));
}

// Says what is left to say of how the program went; its exit code.
int End(Console& console, absl::Status status) {
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

int Print(absl::string_view text) {
  Console console(false);
  console.Out(text);
  return End(console, absl::OkStatus());
}

// CLI11 reports by exception; this is the one place that meets them. `typed`:
// the command line; `configured`: with the options of a file behind it.
// Returns the exit code, or -1 to go on.
int Parse(CLI::App& program, const std::vector<Entry>& entries,
          const Arguments& typed, const Arguments& configured) {
  try {
    // parse() takes the arguments from the back.
    program.parse(Arguments(configured.rbegin(), configured.rend()));
  } catch (const CLI::CallForHelp&) {
    return Print(program.help());
  } catch (const CLI::CallForVersion&) {
    return Print(VersionText());
  } catch (const CLI::ParseError& error) {
    return ReportUsage(configured,
                       ParseFailure(entries, error, typed, configured));
  }
  return -1;
}

int RunCommand(Command& command, bool json) {
  Console console(json);
  const absl::Status status = command.Run(console);
  console.Progress("");
  return End(console, status);
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
    entries.push_back(Entry{std::move(command), nullptr, {}});
  }
  SharedFlags shared;
  for (Entry& entry : entries) {
    AddCommand(program, entry, shared);
  }
  const Arguments typed(argv + 1, argv + argc);
  Arguments arguments = typed;
  if (const absl::Status status = AddConfiguredOptions(arguments);
      !status.ok()) {
    return ReportUsage(arguments, status);
  }
  if (const int code = Parse(program, entries, typed, arguments); code >= 0) {
    return code;
  }
  const Entry* entry = ParsedOf(entries);
  while (entry != nullptr && !entry->parts.empty()) {
    entry = ParsedOf(entry->parts);
  }
  return entry == nullptr ? 2 : RunCommand(*entry->command, shared.json);
}

}  // namespace
}  // namespace millrace::cli

int main(int argc, char** argv) { return millrace::cli::Main(argc, argv); }
