#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace millrace::cli {

// UsageError naming the option where its number is below `least` or above
// `most`.
absl::Status CheckCount(absl::string_view option, int64_t value, int64_t least,
                        int64_t most);
// The same of a number that need not be there, nor whole.
absl::Status CheckNumber(absl::string_view option,
                         const std::optional<double>& value, double least,
                         double most);

}  // namespace millrace::cli
