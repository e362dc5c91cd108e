#include "base/clock.h"

#include <time.h>

#include "absl/time/clock.h"

namespace millrace {

absl::Time SystemClock::Now() const { return absl::Now(); }

absl::Duration SystemClock::Monotonic() const {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace millrace
