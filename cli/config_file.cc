#include "cli/config_file.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"

namespace millrace::cli {
namespace {

constexpr int64_t kConfigBytesMax = int64_t{1} << 20;

// The value of --config; empty where it is not given.
std::string ConfigPath(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view word = arguments[i];
    if (word == "--config" && i + 1 < arguments.size()) {
      return arguments[i + 1];
    }
    if (absl::ConsumePrefix(&word, "--config=")) {
      return std::string(word);
    }
  }
  return "";
}

// Lines of options never are: CLI11 would pass over most of it. A section, as
// [run], begins with a bracket too.
bool IsJson(absl::string_view text) {
  const absl::string_view content = absl::StripLeadingAsciiWhitespace(text);
  return absl::StartsWith(content, "{") ||
         (absl::StartsWith(content, "[") && ParseJson(content, "").ok());
}

absl::StatusOr<std::vector<CLI::ConfigItem>> ReadItems(
    const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, kConfigBytesMax));
  if (IsJson(text)) {
    return InputError(path, "is JSON, which --config does not read",
                      "write a line for each option, as top-k=40, under "
                      "[run] for one command alone");
  }
  std::istringstream stream(text);
  // CLI11 reports by exception.
  try {
    return CLI::ConfigINI().from_config(stream);
  } catch (const CLI::Error& error) {
    return InputError(path, Printable(error.what(), 200));
  }
}

bool IsGiven(const std::vector<std::string>& arguments,
             const std::string& option) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& word) {
                       return word == option ||
                              absl::StartsWith(word, absl::StrCat(option, "="));
                     });
}

// The first `--option` of a text, with its dashes; empty where there is none.
std::string OptionIn(absl::string_view text) {
  const size_t begin = text.find("--");
  if (begin == absl::string_view::npos) {
    return "";
  }
  size_t end = begin + 2;
  while (end < text.size() && (absl::ascii_isalnum(text[end]) ||
                               text[end] == '-' || text[end] == '_')) {
    ++end;
  }
  return std::string(text.substr(begin, end - begin));
}

}  // namespace

std::string EnvironmentName(absl::string_view option) {
  return absl::StrCat("MILLRACE_", absl::AsciiStrToUpper(absl::StrReplaceAll(
                                       option, {{"-", "_"}})));
}

std::string OriginOf(absl::string_view error,
                     const std::vector<std::string>& typed,
                     const std::vector<std::string>& configured) {
  const std::string option = OptionIn(error);
  if (option.size() <= 2 || IsGiven(typed, option)) {
    return "";
  }
  if (IsGiven(configured, option)) {
    return ConfigPath(typed);
  }
  const std::string variable = EnvironmentName(option.substr(2));
  return std::getenv(variable.c_str()) == nullptr
             ? ""
             : absl::StrCat("the environment variable ", variable);
}

absl::Status AddConfiguredOptions(std::vector<std::string>& arguments) {
  const std::string path = ConfigPath(arguments);
  if (path.empty()) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<CLI::ConfigItem> items,
                            ReadItems(path));
  const std::vector<std::string> typed = arguments;
  for (const CLI::ConfigItem& item : items) {
    // CLI11 marks the borders of sections by items named ++ and --.
    const bool border = item.name == "++" || item.name == "--";
    const bool ours =
        item.parents.size() <= typed.size() &&
        std::equal(item.parents.begin(), item.parents.end(), typed.begin());
    const std::string option = absl::StrCat("--", item.name);
    if (border || !ours || IsGiven(typed, option)) {
      continue;
    }
    // A flag takes =true and =false as well; a text may be one of these words.
    for (const std::string& value : item.inputs) {
      arguments.push_back(absl::StrCat(option, "=", value));
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace::cli
