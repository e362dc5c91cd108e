#include <cmath>

#include "kernels/ops_scalar.h"
#include "kernels/vector/elementary.h"

namespace millrace::kernels::scalar {

void RmsNorm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* y = args.y + row * args.y_stride;
    float lanes[16] = {};
    for (int64_t i = 0; i < args.n; ++i) {
      lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
    }
    const float mean = TreeSum(lanes) / static_cast<float>(args.n);
    const float r = 1.0f / std::sqrt(mean + args.eps);
    for (int64_t i = 0; i < args.n; ++i) {
      y[i] = (x[i] * r) * args.g[i];
    }
  }
}

}  // namespace millrace::kernels::scalar
