#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace millrace::cli {

// Finds `--config FILE` among the arguments (the command first) and appends the
// options of that file that the arguments do not give themselves, so that the
// command line wins. Keys stand alone or in a section named after the command;
// sections of other commands are left out. InputError when the file cannot be
// read. Keys that are no option are found when the arguments are parsed.
absl::Status AddConfiguredOptions(std::vector<std::string>& arguments);

}  // namespace millrace::cli
