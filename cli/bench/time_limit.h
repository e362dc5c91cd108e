#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace millrace::cli {

// Until when something may be measured: an interrupt ends it at once, and so
// does the time that it was given, however slow the machine is. Any thread.
class TimeLimit {
 public:
  explicit TimeLimit(absl::Duration time = absl::InfiniteDuration());

  [[nodiscard]] bool Over() const;
  // kCancelled after an interrupt, whatever the time.
  [[nodiscard]] absl::Status CheckInterrupt() const;

 private:
  const SystemClock clock_;
  const absl::Duration end_;
};

}  // namespace millrace::cli
