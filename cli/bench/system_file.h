#pragma once

#include <string>

namespace millrace::cli {

// What a file of /proc or /sys says, which has no size to ask for. Empty where
// it cannot be read.
std::string ReadSystemFile(const std::string& path);

}  // namespace millrace::cli
