#pragma once

#include <cstddef>
#include <cstdint>

// See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// How far ahead of the weights at hand a tile that comes from memory is asked
// for where AsksAhead(): 2 KiB gained half as much, 8 KiB the same.
constexpr int64_t kAheadBytes = 4096;

// Asks for the lines of [from, to). Q6_K reads its scales piece by piece while
// the hardware runs ahead on the codes behind them and skips their later lines:
// 32 instead of 17 GB/s for one token and 2048 columns (Zen 4, stream 35 GB/s).
// Ahead of everything else the hardware needs no help and is only disturbed.
__attribute__((always_inline)) inline void PrefetchLines(const std::byte* from,
                                                         const std::byte* to) {
  for (; from < to; from += 64) {
    __builtin_prefetch(from);
  }
}

}  // namespace
}  // namespace millrace::kernels
