#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::cli {

// Whole numbers between commas or white space: "1,2,3", "1, 2", "1 2\n". A
// comma with nothing before or behind it is refused: where a number was lost,
// the rest of the list means something else. `what` is what one of them is, as
// "token id". UsageError naming `object`; an empty text is an empty list.
absl::StatusOr<std::vector<int64_t>> ParseNumberList(absl::string_view text,
                                                     absl::string_view object,
                                                     absl::string_view what);

}  // namespace millrace::cli
