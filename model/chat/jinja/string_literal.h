#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::model::jinja {

// Resolves Python's escapes in the inside of a literal; an unknown one keeps
// its backslash. Fails on \x, \u and \U without their digits and on \N.
absl::StatusOr<std::string> UnescapeLiteral(absl::string_view inside);

}  // namespace millrace::model::jinja
