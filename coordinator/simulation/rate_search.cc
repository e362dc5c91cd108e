#include "coordinator/simulation/rate_search.h"

#include <algorithm>
#include <cmath>

#include "base/status_macros.h"

namespace millrace::coordinator {
namespace {

constexpr double kPrecision = 1.01;
// Requests a second to start from.
constexpr double kStartLeast = 1e-9;
constexpr double kStartMost = 1e9;
constexpr double kLeast = 1e-9;  // of the start
constexpr double kMost = 1e9;    // the same: where a plan takes no time

}  // namespace

absl::StatusOr<std::optional<double>> FindRate(
    double start,
    absl::FunctionRef<absl::StatusOr<RateTrial>(double rate)> play) {
  start = std::isfinite(start) && start > 0
              ? std::clamp(start, kStartLeast, kStartMost)
              : kStartMost;
  double rate = start;
  MILLRACE_ASSIGN_OR_RETURN(RateTrial trial, play(rate));
  double low = rate;
  double high = rate;
  if (trial.meets) {
    while (trial.meets) {
      low = rate;
      if (trial.at_once) {
        return low;
      }
      rate *= 2;
      if (rate > start * kMost) {
        return low;
      }
      MILLRACE_ASSIGN_OR_RETURN(trial, play(rate));
    }
    high = rate;
  } else {
    while (!trial.meets) {
      high = rate;
      rate /= 2;
      if (rate < start * kLeast) {
        return std::nullopt;
      }
      MILLRACE_ASSIGN_OR_RETURN(trial, play(rate));
    }
    low = rate;
  }
  while (high > low * kPrecision) {
    const double middle = std::sqrt(low * high);
    MILLRACE_ASSIGN_OR_RETURN(trial, play(middle));
    (trial.meets ? low : high) = middle;
  }
  return low;
}

}  // namespace millrace::coordinator
