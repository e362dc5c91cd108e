#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace millrace::cli {

// This machine's name, or `otherwise` where the system has none.
std::string HostName(absl::string_view otherwise);

}  // namespace millrace::cli
