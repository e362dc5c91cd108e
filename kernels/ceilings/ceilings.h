#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/compute_mode.h"
#include "kernels/matmul/matmul.h"

namespace millrace::kernels {

// Loops that are nothing but what bounds a kernel, for one thread: to be timed
// beside it on the same machine in the same minute. They touch no memory but
// what they read.

// Independent multiply-and-add instructions on registers alone, more than are
// under way at once.
struct PeakLoop {
  void (*run)(int64_t turns) = nullptr;  // turns >= 1; null: not there
  int64_t operations_per_turn = 0;       // multiplications and additions
};

// What an instruction set's products can be bound by.
enum class Peak : uint8_t {
  kFma,        // f32 fused multiply-add
  kPairedDot,  // bf16 pairs into f32
  kByteDot,    // bytes into wider integers; by tile registers with AMX
};
inline constexpr int kNumPeaks = 3;

// Places that memory is read from in turn.
inline constexpr int kReadPlaces = 8;

struct CeilingLoops {
  // Reads [data, data + bytes), data 64-byte aligned, bytes % 1024 == 0, as
  // fast as one thread can in order; the result depends on every byte.
  uint64_t (*read)(const std::byte* data, int64_t bytes) = nullptr;
  // The same from kReadPlaces places in turn, which some memories deliver
  // faster if the places are pages apart: bytes >= kReadPlaces * 4096. Or null.
  uint64_t (*read_places)(const std::byte* data, int64_t bytes) = nullptr;
  PeakLoop peaks[kNumPeaks];
};

// The loops of `isa`, laid over each other as its kernels are
// (kernel_versions.h). HostSupports(isa). `read` is always there, the peaks
// are not: the scalar versions have none.
CeilingLoops BuildCeilingLoops(Isa isa);

// Which peak bounds a product, where all are there.
Peak PeakOf(ComputeMode mode, WeightFormat format);
const char* PeakName(Peak peak);

}  // namespace millrace::kernels
