#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "kernels/ceilings/ceilings.h"
#include "stage-worker/runtime/mapped_memory.h"

namespace millrace::cli {

// What this machine can do at most with so many threads, at one moment.
struct MachineRates {
  double memory_bandwidth = 0;  // bytes read per second
  // Operations per second by kernels::Peak; none where there is no such loop.
  std::array<std::optional<double>, kernels::kNumPeaks> peaks;

  // The peak of a product. Where processors lack the paired dot instruction or
  // are slow at it, kernels take two fused steps: its peak is then that of fma.
  [[nodiscard]] std::optional<double> PeakFor(kernels::Peak peak) const;
};

// Measures MachineRates by the loops of kernels/ceilings on a pool of threads.
// A machine's rates change within seconds (clock, neighbours), so that they are
// taken again beside whatever is set against them. Owns the memory that is
// read: four times the last caches where so much can be had, in huge pages, of
// bytes that are ordinary numbers in every weight format. One thread uses it.
class MachineMeter {
 public:
  // Memory for `isa`, which the host supports: less of it where filling takes
  // seconds. kResourceExhausted without any, kCancelled after an interrupt.
  static absl::StatusOr<std::unique_ptr<MachineMeter>> Create(kernels::Isa isa,
                                                              int num_threads);
  MachineMeter(const MachineMeter&) = delete;
  MachineMeter& operator=(const MachineMeter&) = delete;

  // About 50 ms; the better of two readings, at most 0.5 s each.
  [[nodiscard]] double MeasureBandwidth();
  // The mean over `time`, and one reading at least: what the process is stopped
  // for meanwhile counts.
  [[nodiscard]] double MeanBandwidth(absl::Duration time);
  // About 10 ms; none where there is no such loop.
  [[nodiscard]] std::optional<double> MeasurePeak(kernels::Peak peak);
  [[nodiscard]] MachineRates Measure();

  // What must be said beside bandwidths; empty where they are memory's.
  [[nodiscard]] std::string Warning() const;

  [[nodiscard]] ThreadPool& pool() { return pool_; }
  [[nodiscard]] const std::byte* data() const { return memory_.data(); }
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  MachineMeter(kernels::Isa isa, int num_threads, worker::MappedMemory memory,
               int64_t cache_bytes);
  using ReadFunction = uint64_t (*)(const std::byte* data, int64_t bytes);

  void Fill();
  // Sets read_ to the faster way of reading.
  void ChooseRead();
  // Reads everything once, or as much as `time` allows; the bytes read.
  double ReadOnce(absl::Duration time);

  const SystemClock clock_;
  const kernels::CeilingLoops loops_;
  ReadFunction read_ = nullptr;
  worker::MappedMemory memory_;
  int64_t bytes_ = 0;  // of memory_ that are filled
  const int64_t cache_bytes_;
  ThreadPool pool_;
};

// Bytes to read so that they come from memory: four times the last caches and
// not very few, but no more than a quarter of what is available.
int64_t MeasuredBytes(int64_t cache_bytes, int64_t available_bytes);
// That so few bytes were read that the caches' speed is in the rate; empty
// where they were enough.
std::string BandwidthWarning(int64_t read_bytes, int64_t cache_bytes);

}  // namespace millrace::cli
