#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace millrace::cli {

// Finds `--config FILE` among the arguments (the command first) and appends the
// options of that file that the arguments do not give themselves, so that the
// command line wins. Keys stand alone or in a section named after the command
// ([run], [bench], [bench.decode]); sections of other commands are left out.
// InputError when the file cannot be read. Keys that are no option are found
// when the arguments are parsed.
absl::Status AddConfiguredOptions(std::vector<std::string>& arguments);

// Where the first option that an error's text names was given, if not among
// `typed`: the file of --config or its environment variable, for people; empty
// otherwise. `configured`: typed, and what AddConfiguredOptions appended.
std::string OriginOf(absl::string_view error,
                     const std::vector<std::string>& typed,
                     const std::vector<std::string>& configured);

// The environment variable that gives an option (without dashes): MILLRACE_...
std::string EnvironmentName(absl::string_view option);

}  // namespace millrace::cli
