#pragma once

#include <string>

namespace millrace::cli {

// "0.1.0"
const char* Version();
// Commit the build was configured at, or "unknown".
const char* Commit();
// Version, commit and compiled instruction sets, one per line.
std::string VersionText();

}  // namespace millrace::cli
