#pragma once

#include "absl/time/time.h"

namespace millrace {

// Source of time. Passed in wherever time decides something, so that tests and
// simulation can stand on a virtual one. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time, for people and files.
  [[nodiscard]] virtual absl::Time Now() const = 0;
  // Time since an arbitrary start that never runs backwards, for durations.
  [[nodiscard]] virtual absl::Duration Monotonic() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] absl::Time Now() const override;
  [[nodiscard]] absl::Duration Monotonic() const override;
};

// Stands still until told otherwise. Not thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(absl::Time start) : now_(start) {}
  [[nodiscard]] absl::Time Now() const override { return now_; }
  [[nodiscard]] absl::Duration Monotonic() const override { return elapsed_; }
  void Advance(absl::Duration step) {
    now_ += step;
    elapsed_ += step;
  }

 private:
  absl::Time now_;
  absl::Duration elapsed_;
};

}  // namespace millrace
