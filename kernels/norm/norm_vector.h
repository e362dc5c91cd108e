#pragma once

#include "kernels/norm/norm.h"
#include "kernels/vector/lanes.h"

namespace millrace::kernels {
namespace {

// 1 / sqrt of the mean square of x.
inline float InverseRms(const float* x, int64_t n, float eps) {
  Lanes sum = Set1(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Lanes value = Load(x + i);
    sum = Fma(value, value, sum);
  }
  if (i < n) {
    // Absent elements add +0, which changes no sum that began at +0.
    const Lanes value = LoadFirst(x + i, n - i);
    sum = Fma(value, value, sum);
  }
  const float mean = TreeSum(sum) / static_cast<float>(n);
  return 1.0f / SquareRoot(mean + eps);
}

inline void RmsNorm(const RmsNormArgs& args, int64_t row_begin,
                    int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* y = args.y + row * args.y_stride;
    const Lanes r = Set1(InverseRms(x, args.n, args.eps));
    int64_t i = 0;
    for (; i + 16 <= args.n; i += 16) {
      Store((Load(x + i) * r) * Load(args.g + i), y + i);
    }
    if (i < args.n) {
      const int64_t left = args.n - i;
      StoreFirst((LoadFirst(x + i, left) * r) * LoadFirst(args.g + i, left),
                 y + i, left);
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
