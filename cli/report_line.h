#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace millrace::cli {

// Appends a line of a report for people: a name, padded to `width`, its value.
void AppendLine(std::string& out, absl::string_view name,
                absl::string_view value, int width = 12);

}  // namespace millrace::cli
