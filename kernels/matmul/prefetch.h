#pragma once

#include <cstddef>
#include <cstdint>

// See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// Tokens so few that weights come from memory slower than they are multiplied.
constexpr int64_t kFewTokens = 4;

// How far ahead of the weights at hand several tiles side by side that come
// from memory are asked for where AsksAhead(): 2 KiB gained half as much, 8 KiB
// the same.
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

// Asks ahead for memory that is read in order, once for all of it: while a
// window is read, the lines of the next, from each of its pages in turn.
// Windows lie on addresses that are multiples of their size. A core has few
// lines on their way at a time; neighbours among them come from one part of the
// memory and wait for each other: two threads of Sapphire Rapids read 17 GB/s
// in order and 22 from four pages in turn.
__attribute__((always_inline)) inline void PrefetchWindow(const std::byte* from,
                                                          const std::byte* to) {
  constexpr uintptr_t kPage = 4096;
  constexpr uintptr_t kPages = 4;
  constexpr uintptr_t kWindow = kPages * kPage;
  constexpr uintptr_t kUnit = kPages * 64;
  auto unit = (reinterpret_cast<uintptr_t>(from) + kUnit - 1) / kUnit * kUnit;
  for (; unit < reinterpret_cast<uintptr_t>(to); unit += kUnit) {
    const uintptr_t at =
        unit / kWindow * kWindow + kWindow + unit % kWindow / kPages;
#pragma GCC unroll 4
    for (uintptr_t page = 0; page < kPages; ++page) {
      __builtin_prefetch(reinterpret_cast<const void*>(at + page * kPage));
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
