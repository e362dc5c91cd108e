#pragma once

#include <cstdint>

namespace millrace::kernels {

// y = silu(gate) * up, element by element; y may equal gate or up.
struct SwigluArgs {
  const float* gate;  // [num_rows, n]
  int64_t gate_stride;
  const float* up;  // [num_rows, n]
  int64_t up_stride;
  int64_t n;
  float* y;  // [num_rows, n]
  int64_t y_stride;
};
using SwigluFn = void (*)(const SwigluArgs& args, int64_t row_begin,
                          int64_t row_end);

// y[i] = y[i] + x[i] for i in [0, n): the residual addition.
using AddFn = void (*)(const float* x, float* y, int64_t n);

// y[i] = fma(w, x[i], y[i]): one expert's share of a token's output.
using AxpyFn = void (*)(float w, const float* x, float* y, int64_t n);

}  // namespace millrace::kernels
