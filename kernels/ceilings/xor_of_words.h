#pragma once

#include <cstdint>
#include <cstring>

// Included by files that are compiled for one instruction set each, hence the
// unnamed namespace (matmul/tile_walk.h).
namespace millrace::kernels {
namespace {

// Of all 64-bit words of `sums`.
template <typename Sums>
uint64_t XorOfWords(const Sums& sums) {
  constexpr int kBytes = sizeof(Sums);
  uint64_t words[kBytes / 8];
  std::memcpy(words, &sums, sizeof(sums));
  uint64_t all = 0;
  for (const uint64_t word : words) {
    all ^= word;
  }
  return all;
}

}  // namespace
}  // namespace millrace::kernels
