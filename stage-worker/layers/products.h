#pragma once

#include <cstdint>
#include <span>

#include "stage-worker/layers/product_chunks.h"
#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// One matrix product of a step.
struct Product {
  const LoadedMatrix* weight = nullptr;
  const float* bias = nullptr;  // [weight->rows], nullable
  float* y = nullptr;           // [num_tokens, weight->rows]
  int64_t y_stride = 0;         // elements between tokens, >= weight->rows
};

struct ProductInput {
  const float* x = nullptr;  // [*, cols]
  int64_t x_stride = 0;      // elements between rows, >= cols
  // Token t is row row_index[t] of x; null: row t.
  const int32_t* row_index = nullptr;
  int64_t num_tokens = 0;

  bool operator==(const ProductInput&) const = default;
};

// Products over one input.
struct ProductGroup {
  ProductInput input;
  std::span<const Product> products;
};

// y = x w^T + bias for all products of all groups: the inputs are packed in one
// operation of the thread pool, equal neighbouring ones once, and multiplied in
// another. At most kProductGroupsMax groups with kProductsMax products in all;
// the tokens of all different inputs fit the packed buffers.
// `next`: what the products after these will read; threads that wait read the
// beginning of it ahead. Empty where it is not known yet.
inline constexpr size_t kProductGroupsMax = 32;
static_assert(2 * kProductGroupsMax <= kProductsMax);
void MultiplyGroups(StepContext& step, std::span<const ProductGroup> groups,
                    kernels::ComputeMode compute, NextWeights next);

// The same for one input.
void Multiply(StepContext& step, const ProductInput& input,
              std::span<const Product> products, kernels::ComputeMode compute,
              NextWeights next);

}  // namespace millrace::worker
