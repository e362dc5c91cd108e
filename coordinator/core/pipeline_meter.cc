#include "coordinator/core/pipeline_meter.h"

#include <algorithm>

namespace millrace::coordinator {

void PipelineMeter::Advance(absl::Duration now, int64_t in_flight,
                            bool running) {
  if (now <= last_) {
    return;
  }
  if (running) {
    const double seconds = absl::ToDoubleSeconds(now - last_);
    in_flight_seconds_ += seconds * static_cast<double>(in_flight);
    running_seconds_ += seconds;
  }
  last_ = now;
}

void PipelineMeter::RecordCycle(absl::Duration round_trip) {
  cycles_[static_cast<size_t>(num_cycles_) % kCycles] = round_trip;
  ++num_cycles_;
}

double PipelineMeter::MeanInFlight() const {
  return running_seconds_ > 0 ? in_flight_seconds_ / running_seconds_ : 0;
}

absl::Duration PipelineMeter::CycleP50() const {
  if (num_cycles_ == 0) {
    return absl::ZeroDuration();
  }
  std::array<absl::Duration, kCycles> sorted = cycles_;
  const int64_t known =
      std::min<int64_t>(num_cycles_, static_cast<int64_t>(kCycles));
  std::nth_element(sorted.begin(), sorted.begin() + known / 2,
                   sorted.begin() + known);
  return sorted[static_cast<size_t>(known / 2)];
}

}  // namespace millrace::coordinator
