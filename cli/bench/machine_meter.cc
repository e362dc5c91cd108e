#include "cli/bench/machine_meter.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/status_macros.h"
#include "cli/bench/available_memory.h"

namespace millrace::cli {
namespace {

constexpr int64_t kReadLeast = int64_t{128} << 20;
constexpr int64_t kReadMost = int64_t{2} << 30;
// Where the system does not tell its last cache.
constexpr int64_t kCacheBytes = int64_t{64} << 20;
// A claim of a chunk drains the loads in flight.
constexpr int64_t kChunkBytes = int64_t{1} << 20;
// The best of so many is what the machine can do.
constexpr int kTries = 2;
// Long enough to be told from the start of an operation of the pool, short
// enough to be taken again and again.
constexpr double kPeakSeconds = 0.004;
constexpr int64_t kTurnsFirst = 1000;
constexpr int kChunksPerThread = 4;

int64_t CacheBytes() {
  int64_t bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return bytes > 0 ? bytes : kCacheBytes;
}

}  // namespace

std::optional<double> MachineRates::PeakFor(kernels::Peak peak) const {
  const std::optional<double>& own = peaks[static_cast<size_t>(peak)];
  // No number is less than any.
  return peak == kernels::Peak::kPairedDot
             ? std::max(own, peaks[static_cast<size_t>(kernels::Peak::kFma)])
             : own;
}

int64_t MeasuredBytes(int64_t cache_bytes, int64_t available_bytes) {
  const int64_t wanted = std::clamp(4 * cache_bytes, kReadLeast, kReadMost);
  const int64_t bytes = std::min(wanted, available_bytes / 4);
  return std::max(kChunkBytes, bytes / kChunkBytes * kChunkBytes);
}

absl::StatusOr<std::unique_ptr<MachineMeter>> MachineMeter::Create(
    kernels::Isa isa, int num_threads) {
  MILLRACE_ASSIGN_OR_RETURN(worker::MappedMemory memory,
                            worker::MappedMemory::Map(MeasuredBytes(
                                CacheBytes(), AvailableMemory())));
  return std::unique_ptr<MachineMeter>(
      new MachineMeter(isa, num_threads, std::move(memory)));
}

MachineMeter::MachineMeter(kernels::Isa isa, int num_threads,
                           worker::MappedMemory memory)
    : loops_(kernels::BuildCeilingLoops(isa)),
      memory_(std::move(memory)),
      pool_(num_threads) {
  Fill();
}

// Bytes from 0x30 to 0x3f are no subnormal, infinity or NaN in any format, nor
// a scale or code that a format forbids: kernels take no slow path, and their
// speed does not depend on values else.
void MachineMeter::Fill() {
  pool_.Run(bytes() / kChunkBytes, [this](int64_t chunk, int) {
    auto state = static_cast<uint32_t>(chunk * 2 + 1);
    std::byte* const to = memory_.data() + chunk * kChunkBytes;
    for (int64_t i = 0; i < kChunkBytes; ++i) {
      state = state * 1664525 + 1013904223;
      to[i] = static_cast<std::byte>(0x30 | state >> 28);
    }
  });
}

double MachineMeter::MeasureBandwidth() {
  double best = 0;
  std::atomic<uint64_t> sum{0};
  for (int i = 0; i < kTries; ++i) {
    const absl::Duration start = clock_.Monotonic();
    pool_.Run(bytes() / kChunkBytes, [&](int64_t chunk, int) {
      sum.fetch_xor(
          loops_.read(memory_.data() + chunk * kChunkBytes, kChunkBytes),
          std::memory_order_relaxed);
    });
    const double seconds = absl::ToDoubleSeconds(clock_.Monotonic() - start);
    best = std::max(best, static_cast<double>(bytes()) / seconds);
  }
  return best;
}

std::optional<double> MachineMeter::MeasurePeak(kernels::Peak peak) {
  const kernels::PeakLoop& loop = loops_.peaks[static_cast<size_t>(peak)];
  if (loop.run == nullptr) {
    return std::nullopt;
  }
  const int64_t chunks = int64_t{kChunksPerThread} * pool_.num_threads();
  double best = 0;
  int measured = 0;
  for (int64_t turns = kTurnsFirst; measured < kTries;) {
    const absl::Duration start = clock_.Monotonic();
    pool_.Run(chunks, [&](int64_t, int) { loop.run(turns); });
    const double seconds = absl::ToDoubleSeconds(clock_.Monotonic() - start);
    if (measured == 0 && seconds < kPeakSeconds / 2) {
      turns *= 2;
      continue;
    }
    ++measured;
    best = std::max(best, static_cast<double>(chunks * turns) *
                              static_cast<double>(loop.operations_per_turn) /
                              seconds);
  }
  return best;
}

MachineRates MachineMeter::Measure() {
  MachineRates rates;
  rates.memory_bandwidth = MeasureBandwidth();
  for (int i = 0; i < kernels::kNumPeaks; ++i) {
    rates.peaks[static_cast<size_t>(i)] =
        MeasurePeak(static_cast<kernels::Peak>(i));
  }
  return rates;
}

}  // namespace millrace::cli
