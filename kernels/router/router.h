#pragma once

#include <cstdint>

namespace millrace::kernels {

// Softmax router of Qwen3-MoE: p = softmax(logits) over all experts, the k
// largest (ties to the lower index, NaN last), weights p or, renormalised,
// p / sum of the chosen in the order of choice.
struct SoftmaxRouterArgs {
  const float* logits;  // [num_rows, num_experts]
  int64_t logits_stride;
  int64_t num_experts;
  int64_t num_chosen;  // k <= num_experts
  bool renormalise;
  int32_t* experts;  // [num_rows, num_chosen], best first
  float* weights;    // [num_rows, num_chosen]
  float* scratch;    // [num_experts]
};
using SoftmaxRouterFn = void (*)(const SoftmaxRouterArgs& args,
                                 int64_t row_begin, int64_t row_end);

}  // namespace millrace::kernels
