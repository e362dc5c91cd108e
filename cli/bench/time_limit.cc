#include "cli/bench/time_limit.h"

#include "cli/interrupt.h"

namespace millrace::cli {

TimeLimit::TimeLimit(absl::Duration time) : end_(clock_.Monotonic() + time) {}

bool TimeLimit::Over() const {
  return Interrupts() > 0 || clock_.Monotonic() >= end_;
}

absl::Status TimeLimit::CheckInterrupt() const {
  return Interrupts() > 0 ? absl::CancelledError("interrupted while measuring")
                          : absl::OkStatus();
}

}  // namespace millrace::cli
