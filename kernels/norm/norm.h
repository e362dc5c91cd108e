#pragma once

#include <cstdint>

namespace millrace::kernels {

// y = (x * r) * g, r = 1 / sqrt(sum(x^2) / n + eps); README.md has the order.
struct RmsNormArgs {
  const float* x;  // [num_rows, n], row stride x_stride
  int64_t x_stride;
  const float* g;  // [n]
  float eps;
  int64_t n;
  float* y;  // [num_rows, n], row stride y_stride; may equal x
  int64_t y_stride;
};
using RmsNormFn = void (*)(const RmsNormArgs& args, int64_t row_begin,
                           int64_t row_end);

}  // namespace millrace::kernels
