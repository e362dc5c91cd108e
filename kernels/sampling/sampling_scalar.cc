#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops_scalar.h"
#include "kernels/vector/elementary.h"

namespace millrace::kernels {

float LogF32(float x) { return scalar::Log(x); }

namespace scalar {

float RowMax(const float* x, int64_t n) {
  float max = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) {
      return x[i];
    }
    max = x[i] > max ? x[i] : max;
  }
  // A zero comes out as +0, whichever the row holds.
  return max + 0.0f;
}

void ExpBlockSums(const float* x, float max, int64_t n, float* out,
                  float* block_sums) {
  for (int64_t begin = 0; begin < n; begin += kSamplingBlock) {
    const int64_t end = std::min(begin + kSamplingBlock, n);
    float lanes[16] = {};
    for (int64_t i = begin; i < end; ++i) {
      const float e = Exp(x[i] - max);
      lanes[i % 16] += e;
      if (out != nullptr) {
        out[i] = e;
      }
    }
    block_sums[begin / kSamplingBlock] = TreeSum(lanes);
  }
}

void Divide(const float* x, float divisor, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = x[i] / divisor;
  }
}

}  // namespace scalar
}  // namespace millrace::kernels
