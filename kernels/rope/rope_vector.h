#pragma once

#include "kernels/rope/rope.h"
#include "kernels/vector/lanes.h"

namespace millrace::kernels {
namespace {

// Pairs [i, i + n) of every head, n <= 16, in the half-split arrangement.
inline void RotateHalves(const RopeArgs& args, int64_t i, int64_t n) {
  const int64_t half = args.rotary_dims / 2;
  const Lanes c = LoadFirst(args.cos + i, n);
  const Lanes s = LoadFirst(args.sin + i, n);
  for (int64_t head = 0; head < args.num_heads; ++head) {
    float* x = args.x + head * args.head_dim + i;
    const Lanes a = LoadFirst(x, n);
    const Lanes b = LoadFirst(x + half, n);
    StoreFirst(Fma(a, c, Negate(b * s)), x, n);
    StoreFirst(Fma(a, s, b * c), x + half, n);
  }
}

// Pairs [i, i + n) of every head, n <= 8, interleaved: an even lane becomes
// fma(a, c, b * -s), an odd one fma(a, s, b * c), with the pair's a and b in
// both.
inline void RotatePairs(const RopeArgs& args, int64_t i, int64_t n) {
  float with_a[16] = {};
  float with_b[16] = {};
  for (int64_t j = 0; j < n; ++j) {
    with_a[2 * j] = args.cos[i + j];
    with_a[2 * j + 1] = args.sin[i + j];
    with_b[2 * j] = -args.sin[i + j];
    with_b[2 * j + 1] = args.cos[i + j];
  }
  const Lanes factor_a = Load(with_a);
  const Lanes factor_b = Load(with_b);
  for (int64_t head = 0; head < args.num_heads; ++head) {
    float* x = args.x + head * args.head_dim + 2 * i;
    const Lanes pair = LoadFirst(x, 2 * n);
    StoreFirst(
        Fma(DuplicateEven(pair), factor_a, DuplicateOdd(pair) * factor_b), x,
        2 * n);
  }
}

inline void Rope(const RopeArgs& args) {
  const int64_t half = args.rotary_dims / 2;
  const int64_t step = args.interleaved ? 8 : 16;
  for (int64_t i = 0; i < half; i += step) {
    const int64_t n = half - i < step ? half - i : step;
    if (args.interleaved) {
      RotatePairs(args, i, n);
    } else {
      RotateHalves(args, i, n);
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
