#pragma once

#include "kernels/sampling/sampling.h"
#include "kernels/vector/functions_vector.h"

namespace millrace::kernels {
namespace {

inline float RowMax(const float* x, int64_t n) {
  Lanes max = Set1(-kInfinity);
  uint32_t nan = 0;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Lanes value = Load(x + i);
    max = Max(max, value);
    nan |= NanMask(value);
  }
  if (i < n) {
    const Lanes value =
        KeepRange(LoadFirst(x + i, n - i), 0, n - i, Set1(-kInfinity));
    max = Max(max, value);
    nan |= NanMask(value);
  }
  // A zero comes out as +0, whichever the lanes held.
  return nan != 0 ? __builtin_nanf("") : LargestLane(max) + 0.0f;
}

inline void ExpBlockSums(const float* x, float max, int64_t n, float* out,
                         float* block_sums) {
  const Lanes shift = Set1(max);
  for (int64_t begin = 0; begin < n; begin += kSamplingBlock) {
    const int64_t end = begin + kSamplingBlock < n ? begin + kSamplingBlock : n;
    Lanes sum = Set1(0.0f);
    for (int64_t i = begin; i < end; i += 16) {
      const int64_t left = end - i < 16 ? end - i : 16;
      const Lanes value = left == 16 ? Load(x + i) : LoadFirst(x + i, left);
      const Lanes e = Exp(value - shift);
      sum = sum + (left == 16 ? e : KeepRange(e, 0, left, Set1(0.0f)));
      if (out != nullptr) {
        if (left == 16) {
          Store(e, out + i);
        } else {
          StoreFirst(e, out + i, left);
        }
      }
    }
    block_sums[begin / kSamplingBlock] = TreeSum(sum);
  }
}

inline void Divide(const float* x, float divisor, int64_t n, float* out) {
  const Lanes d = Set1(divisor);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Store(Load(x + i) / d, out + i);
  }
  if (i < n) {
    StoreFirst(LoadFirst(x + i, n - i) / d, out + i, n - i);
  }
}

}  // namespace
}  // namespace millrace::kernels
