#pragma once

#include <algorithm>
#include <random>

#include "absl/time/time.h"

namespace millrace::worker {

// Delays between attempts that go on for ever: doubling from `first` to
// `most`, each drawn from [half, whole], so that workers that lost one
// coordinator do not come back in step. Not thread-safe.
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration most, uint32_t seed)
      : first_(first), most_(most), next_(first), random_(seed) {}

  absl::Duration Next() {
    const absl::Duration whole = next_;
    next_ = std::min(next_ * 2, most_);
    std::uniform_real_distribution<double> share(0.5, 1.0);
    return whole * share(random_);
  }
  // After an attempt that worked.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  const absl::Duration most_;
  absl::Duration next_;
  std::mt19937 random_;
};

}  // namespace millrace::worker
