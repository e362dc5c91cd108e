#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace millrace::coordinator {

// How full the pipeline was and how long micro-batches took around it. Owned
// by the core; pure.
class PipelineMeter {
 public:
  // To be called before the number in flight or running changes.
  void Advance(absl::Duration now, int64_t in_flight, bool running);
  void RecordCycle(absl::Duration round_trip);

  // Mean over time of micro-batches in flight while any request was running,
  // 0 before the first.
  [[nodiscard]] double MeanInFlight() const;
  // Median of the most recent round trips, 0 before the first.
  [[nodiscard]] absl::Duration CycleP50() const;

 private:
  static constexpr size_t kCycles = 256;

  absl::Duration last_;
  double in_flight_seconds_ = 0;
  double running_seconds_ = 0;
  std::array<absl::Duration, kCycles> cycles_;
  int64_t num_cycles_ = 0;
};

}  // namespace millrace::coordinator
