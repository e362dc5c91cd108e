#include <algorithm>

#include "stage-worker/experts/expert_store.h"
#include "stage-worker/layers/layer.h"
#include "stage-worker/layers/products.h"

namespace millrace::worker {
namespace {

void Route(StepContext& step, const LoadedMoeFfn& weights) {
  ActivationBuffers& buffers = step.buffers;
  const Product router[] = {
      {&weights.router, nullptr, buffers.router_logits, step.sizes.experts}};
  // Router matrices are products of the exact kind in both modes: a rounded
  // score would choose other experts.
  Multiply(step, {buffers.normed, step.sizes.hidden, nullptr, step.num_rows()},
           router, kernels::ComputeMode::kExact);
  // One row after another on this thread: its cost is nothing beside an
  // expert's.
  step.kernels->softmax_router({.logits = buffers.router_logits,
                                .logits_stride = step.sizes.experts,
                                .num_experts = weights.router.rows,
                                .num_chosen = weights.experts_per_token,
                                .renormalise = weights.renormalise,
                                .experts = buffers.chosen,
                                .weights = buffers.chosen_weights,
                                .scratch = buffers.router_scratch},
                               0, step.num_rows());
}

// Runs one expert over the `count` rows listed in `rows`; its outputs go to
// `out`, [count, hidden].
void RunExpert(StepContext& step, const LoadedMoeFfn& weights,
               const LoadedExpert& expert, const int32_t* rows, int64_t count,
               float* out) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t width = step.sizes.intermediate;
  const Product in[] = {{&expert.gate, nullptr, buffers.gate, width},
                        {&expert.up, nullptr, buffers.up, width}};
  Multiply(step, {buffers.normed, step.sizes.hidden, rows, count}, in,
           step.compute);
  const kernels::SwigluArgs swiglu = {.gate = buffers.gate,
                                      .gate_stride = width,
                                      .up = buffers.up,
                                      .up_stride = width,
                                      .n = weights.intermediate,
                                      .y = buffers.gate,
                                      .y_stride = width};
  ForRanges(step, count, 4, [&](int64_t begin, int64_t end, int) {
    step.kernels->swiglu(swiglu, begin, end);
  });
  const Product back[] = {{&expert.down, nullptr, out, step.sizes.hidden}};
  Multiply(step, {buffers.gate, width, nullptr, count}, back, step.compute);
}

}  // namespace

void RunMoeFfn(StepContext& step, const LoadedMoeFfn& weights,
               ExpertStore& experts) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t hidden = step.sizes.hidden;
  const int64_t chosen = weights.experts_per_token;
  const int64_t num_choices = step.num_rows() * chosen;
  NormRows(step, weights.norm, buffers.hidden, hidden, buffers.normed);
  Route(step, weights);

  // Choices are gathered expert by expert; the c-th output row belongs to the
  // choice whose index is then kept in place of the expert's number.
  int64_t filled = 0;
  for (int64_t expert = 0;
       expert < static_cast<int64_t>(weights.experts.size()); ++expert) {
    const int64_t begin = filled;
    for (int64_t choice = 0; choice < num_choices; ++choice) {
      if (buffers.chosen[choice] == expert) {
        buffers.choice_rows[filled] = static_cast<int32_t>(choice / chosen);
        // Encoded as a negative number, which no expert has.
        buffers.chosen[choice] = static_cast<int32_t>(-1 - filled);
        ++filled;
      }
    }
    if (filled > begin) {
      RunExpert(step, weights, experts.Acquire(weights, expert),
                buffers.choice_rows + begin, filled - begin,
                buffers.expert_out + begin * hidden);
    }
  }
  ForRanges(step, step.num_rows(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* sum = buffers.normed + row * hidden;
      std::fill(sum, sum + hidden, 0.0f);
      for (int64_t rank = 0; rank < chosen; ++rank) {
        const int64_t choice = row * chosen + rank;
        step.kernels->axpy(
            buffers.chosen_weights[choice],
            buffers.expert_out + (-1 - buffers.chosen[choice]) * hidden, sum,
            hidden);
      }
    }
  });
  AddRows(step, buffers.normed);
}

}  // namespace millrace::worker
