#pragma once

#include <cstdint>
#include <span>

#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// One matrix product of a step.
struct Product {
  const LoadedMatrix* weight = nullptr;
  const float* bias = nullptr;  // nullable
  float* y = nullptr;           // [num_tokens, weight->rows]
  int64_t y_stride = 0;
};

struct ProductInput {
  const float* x = nullptr;  // [*, cols]
  int64_t x_stride = 0;
  // Token t is row row_index[t] of x; null: row t.
  const int32_t* row_index = nullptr;
  int64_t num_tokens = 0;
};

// y = x w^T + bias for several matrices over one input, in one operation of the
// thread pool. At most kProductsMax.
inline constexpr size_t kProductsMax = 4;
void Multiply(StepContext& step, const ProductInput& input,
              std::span<const Product> products, kernels::ComputeMode compute);

}  // namespace millrace::worker
