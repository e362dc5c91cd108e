#pragma once

#include "kernels/activation/activation.h"
#include "kernels/vector/functions_vector.h"

namespace millrace::kernels {
namespace {

inline void Swiglu(const SwigluArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* gate = args.gate + row * args.gate_stride;
    const float* up = args.up + row * args.up_stride;
    float* y = args.y + row * args.y_stride;
    int64_t i = 0;
    for (; i + 16 <= args.n; i += 16) {
      Store(Silu(Load(gate + i)) * Load(up + i), y + i);
    }
    if (i < args.n) {
      const int64_t left = args.n - i;
      StoreFirst(Silu(LoadFirst(gate + i, left)) * LoadFirst(up + i, left),
                 y + i, left);
    }
  }
}

inline void Add(const float* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Store(Load(y + i) + Load(x + i), y + i);
  }
  if (i < n) {
    StoreFirst(LoadFirst(y + i, n - i) + LoadFirst(x + i, n - i), y + i, n - i);
  }
}

inline void Axpy(float w, const float* x, float* y, int64_t n) {
  const Lanes weight = Set1(w);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Store(Fma(weight, Load(x + i), Load(y + i)), y + i);
  }
  if (i < n) {
    const int64_t left = n - i;
    StoreFirst(Fma(weight, LoadFirst(x + i, left), LoadFirst(y + i, left)),
               y + i, left);
  }
}

}  // namespace
}  // namespace millrace::kernels
