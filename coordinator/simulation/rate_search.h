#pragma once

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace millrace::coordinator {

// What a run at some rate came to.
struct RateTrial {
  bool meets = false;    // every limit was kept as it should be
  bool at_once = false;  // as good as all requests were there from the start
};

// The highest rate, within 1 %, at which `play` meets its limits; nothing when
// none does that is a billionth of `start` or more. From `start`, where it
// is finite and above 0, it doubles or halves until the answer changes, then
// bisects; a rate at which all requests come at once is the end, as a higher
// one is the same load, and so is a billion times `start`. Taken for granted:
// below a rate that meets the limits all rates do.
absl::StatusOr<std::optional<double>> FindRate(
    double start,
    absl::FunctionRef<absl::StatusOr<RateTrial>(double rate)> play);

}  // namespace millrace::coordinator
