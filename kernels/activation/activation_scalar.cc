#include <cmath>

#include "kernels/ops_scalar.h"
#include "kernels/vector/elementary.h"

namespace millrace::kernels::scalar {

void Swiglu(const SwigluArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* gate = args.gate + row * args.gate_stride;
    const float* up = args.up + row * args.up_stride;
    float* y = args.y + row * args.y_stride;
    for (int64_t i = 0; i < args.n; ++i) {
      y[i] = Silu(gate[i]) * up[i];
    }
  }
}

void Add(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = y[i] + x[i];
  }
}

void Axpy(float w, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = std::fma(w, x[i], y[i]);
  }
}

}  // namespace millrace::kernels::scalar
