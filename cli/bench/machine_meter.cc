#include "cli/bench/machine_meter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/bench/available_memory.h"
#include "cli/bench/last_cache.h"
#include "cli/bench/time_limit.h"
#include "cli/interrupt.h"

namespace millrace::cli {
namespace {

constexpr int64_t kReadLeast = int64_t{128} << 20;
// With so many times the caches, at most every fourth byte of a round is still
// in one.
constexpr int64_t kCachesRead = 4;
// Where the system does not tell its last caches.
constexpr int64_t kCacheBytes = int64_t{64} << 20;
// A claim of a chunk drains the loads in flight.
constexpr int64_t kChunkBytes = int64_t{1} << 20;
// Filling goes on in steps of so many chunks until it has taken this long:
// memory that another process makes slow is measured on less of it.
constexpr int64_t kFillChunks = 64;
constexpr absl::Duration kFillTime = absl::Seconds(2);
// Of one reading. Ten times what a machine needs that is not busy.
constexpr absl::Duration kReadTime = absl::Milliseconds(500);
// Of one that decides in which order memory is read.
constexpr absl::Duration kChoiceTime = absl::Milliseconds(50);
// The best of so many is what the machine can do.
constexpr int kTries = 2;
// Long enough to be told from the start of an operation of the pool, short
// enough to be taken again and again.
constexpr absl::Duration kPeakTime = absl::Milliseconds(4);
constexpr int64_t kTurnsFirst = 1000;
constexpr int kChunksPerThread = 4;

}  // namespace

std::optional<double> MachineRates::PeakFor(kernels::Peak peak) const {
  const std::optional<double>& own = peaks[static_cast<size_t>(peak)];
  // No number is less than any.
  return peak == kernels::Peak::kPairedDot
             ? std::max(own, peaks[static_cast<size_t>(kernels::Peak::kFma)])
             : own;
}

int64_t MeasuredBytes(int64_t cache_bytes, int64_t available_bytes) {
  const int64_t wanted = std::max(kCachesRead * cache_bytes, kReadLeast);
  const int64_t bytes = std::min(wanted, available_bytes / 4);
  return std::max(kChunkBytes, bytes / kChunkBytes * kChunkBytes);
}

std::string BandwidthWarning(int64_t read_bytes, int64_t cache_bytes) {
  if (read_bytes >= kCachesRead * cache_bytes) {
    return "";
  }
  return absl::StrCat("memory bandwidth is of ", HumanSize(read_bytes),
                      ", less than four times the last caches (",
                      HumanSize(cache_bytes), "): their speed is in it");
}

absl::StatusOr<std::unique_ptr<MachineMeter>> MachineMeter::Create(
    kernels::Isa isa, int num_threads) {
  const int64_t told = LastCachesBytes();
  const int64_t cache_bytes = told > 0 ? told : kCacheBytes;
  MILLRACE_ASSIGN_OR_RETURN(
      worker::MappedMemory memory,
      worker::MappedMemory::Map(MeasuredBytes(cache_bytes, AvailableMemory())));
  std::unique_ptr<MachineMeter> meter(
      new MachineMeter(isa, num_threads, std::move(memory), cache_bytes));
  MILLRACE_RETURN_IF_ERROR(TimeLimit().CheckInterrupt());
  return meter;
}

MachineMeter::MachineMeter(kernels::Isa isa, int num_threads,
                           worker::MappedMemory memory, int64_t cache_bytes)
    : loops_(kernels::BuildCeilingLoops(isa)),
      memory_(std::move(memory)),
      cache_bytes_(cache_bytes),
      pool_(num_threads) {
  Fill();
  ChooseRead();
}

// Bytes from 0x30 to 0x3f are no subnormal, infinity or NaN in any format, nor
// a scale or code that a format forbids: kernels take no slow path, and their
// speed does not depend on values else. All chunks are alike.
void MachineMeter::Fill() {
  uint32_t state = 1;
  for (int64_t i = 0; i < kChunkBytes; ++i) {
    state = state * 1664525 + 1013904223;
    memory_.data()[i] = static_cast<std::byte>(0x30 | state >> 28);
  }
  const TimeLimit limit(kFillTime);
  const int64_t chunks = memory_.bytes() / kChunkBytes;
  int64_t filled = 1;
  while (filled < chunks && !limit.Over()) {
    const int64_t step = std::min(kFillChunks, chunks - filled);
    pool_.Run(step, [&](int64_t chunk, int) {
      std::memcpy(memory_.data() + (filled + chunk) * kChunkBytes,
                  memory_.data(), kChunkBytes);
    });
    filled += step;
  }
  bytes_ = filled * kChunkBytes;
}

void MachineMeter::ChooseRead() {
  read_ = loops_.read;
  if (loops_.read_places == nullptr) {
    return;
  }
  const auto rate = [this](ReadFunction read) {
    read_ = read;
    const absl::Duration start = clock_.Monotonic();
    const double bytes = ReadOnce(kChoiceTime);
    return bytes / absl::ToDoubleSeconds(clock_.Monotonic() - start);
  };
  double in_order = 0;
  double from_places = 0;
  for (int i = 0; i < kTries; ++i) {
    in_order = std::max(in_order, rate(loops_.read));
    from_places = std::max(from_places, rate(loops_.read_places));
  }
  read_ = in_order > from_places ? loops_.read : loops_.read_places;
}

double MachineMeter::ReadOnce(absl::Duration time) {
  std::atomic<uint64_t> sum{0};
  std::atomic<int64_t> chunks{0};
  const TimeLimit limit(time);
  pool_.Run(bytes_ / kChunkBytes, [&](int64_t chunk, int) {
    if (limit.Over()) {
      return;
    }
    sum.fetch_xor(read_(memory_.data() + chunk * kChunkBytes, kChunkBytes),
                  std::memory_order_relaxed);
    chunks.fetch_add(1, std::memory_order_relaxed);
  });
  return static_cast<double>(chunks.load() * kChunkBytes);
}

double MachineMeter::MeasureBandwidth() {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const absl::Duration start = clock_.Monotonic();
    const double bytes = ReadOnce(kReadTime);
    best = std::max(best,
                    bytes / absl::ToDoubleSeconds(clock_.Monotonic() - start));
  }
  return best;
}

double MachineMeter::MeanBandwidth(absl::Duration time) {
  const TimeLimit limit(time);
  const absl::Duration start = clock_.Monotonic();
  double bytes = 0;
  do {
    bytes += ReadOnce(kReadTime);
  } while (!limit.Over());
  return bytes / absl::ToDoubleSeconds(clock_.Monotonic() - start);
}

std::optional<double> MachineMeter::MeasurePeak(kernels::Peak peak) {
  const kernels::PeakLoop& loop = loops_.peaks[static_cast<size_t>(peak)];
  if (loop.run == nullptr) {
    return std::nullopt;
  }
  const int64_t chunks = int64_t{kChunksPerThread} * pool_.num_threads();
  double best = 0;
  int measured = 0;
  for (int64_t turns = kTurnsFirst; measured < kTries && Interrupts() == 0;) {
    const absl::Duration start = clock_.Monotonic();
    pool_.Run(chunks, [&](int64_t, int) { loop.run(turns); });
    const absl::Duration time = clock_.Monotonic() - start;
    if (measured == 0 && time < kPeakTime / 2) {
      turns *= 2;
      continue;
    }
    ++measured;
    best = std::max(best, static_cast<double>(chunks * turns) *
                              static_cast<double>(loop.operations_per_turn) /
                              absl::ToDoubleSeconds(time));
  }
  return best;
}

std::string MachineMeter::Warning() const {
  return BandwidthWarning(bytes_, cache_bytes_);
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
