#include <algorithm>

#include "base/check.h"
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
           router, kernels::ComputeMode::kExact, {});
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

// Sorts the choices by expert: afterwards choices of expert e take the places
// [expert_ends[e - 1], expert_ends[e]), choice_rows[place] is the row, and
// chosen[choice] the choice's place.
void SortChoices(StepContext& step, const LoadedMoeFfn& weights) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t chosen = weights.experts_per_token;
  const int64_t num_choices = step.num_rows() * chosen;
  const auto experts = static_cast<int64_t>(weights.experts.size());
  int32_t* const next = buffers.expert_ends;
  std::fill(next, next + experts, 0);
  for (int64_t choice = 0; choice < num_choices; ++choice) {
    ++next[buffers.chosen[choice]];
  }
  int32_t begin = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int32_t count = next[expert];
    next[expert] = begin;
    begin += count;
  }
  for (int64_t choice = 0; choice < num_choices; ++choice) {
    const int32_t place = next[buffers.chosen[choice]]++;
    buffers.choice_rows[place] = static_cast<int32_t>(choice / chosen);
    buffers.chosen[choice] = place;
  }
}

// Experts that run together: as many as fit the buffers between them.
struct Wave {
  int64_t num = 0;
  int32_t experts[kProductGroupsMax];
  const LoadedExpert* loaded[kProductGroupsMax];
  int64_t begin = 0;                  // place of the first choice
  int64_t counts[kProductGroupsMax];  // choices of each
  int64_t total = 0;
};

// The next wave of experts that were chosen, from `expert` on, which moves
// behind it; empty at the end.
Wave NextWave(const StepContext& step, const LoadedMoeFfn& weights,
              int64_t& expert) {
  const int32_t* const ends = step.buffers.expert_ends;
  Wave wave;
  wave.begin = expert == 0 ? 0 : ends[expert - 1];
  for (; expert < static_cast<int64_t>(weights.experts.size()); ++expert) {
    const int64_t count = ends[expert] - (wave.begin + wave.total);
    if (count == 0) {
      continue;
    }
    if (wave.num == static_cast<int64_t>(kProductGroupsMax) ||
        wave.total + count > step.ffn_rows_max) {
      break;
    }
    wave.experts[wave.num] = static_cast<int32_t>(expert);
    wave.counts[wave.num] = count;
    ++wave.num;
    wave.total += count;
  }
  return wave;
}

// gate and up of every expert of the wave over the rows that chose it.
void MultiplyIn(StepContext& step, const Wave& wave) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t width = step.sizes.intermediate;
  Product products[2 * kProductGroupsMax];
  ProductGroup groups[kProductGroupsMax];
  const LoadedMatrix* after[kProductGroupsMax];
  int64_t done = 0;
  for (int64_t i = 0; i < wave.num; ++i) {
    Product* const pair = products + 2 * i;
    pair[0] = {&wave.loaded[i]->gate, nullptr, buffers.gate + done * width,
               width};
    pair[1] = {&wave.loaded[i]->up, nullptr, buffers.up + done * width, width};
    // A single row is packed once for all experts.
    const int32_t* const rows = step.num_rows() == 1
                                    ? nullptr
                                    : buffers.choice_rows + wave.begin + done;
    groups[i] = {{buffers.normed, step.sizes.hidden, rows, wave.counts[i]},
                 {pair, 2}};
    after[i] = &wave.loaded[i]->down;
    done += wave.counts[i];
  }
  const auto num = static_cast<size_t>(wave.num);
  MultiplyGroups(step, {groups, num}, step.compute, {after, num});
}

void MultiplyOut(StepContext& step, const Wave& wave, NextWeights next) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t width = step.sizes.intermediate;
  const int64_t hidden = step.sizes.hidden;
  Product products[kProductGroupsMax];
  ProductGroup groups[kProductGroupsMax];
  int64_t done = 0;
  for (int64_t i = 0; i < wave.num; ++i) {
    products[i] = {&wave.loaded[i]->down, nullptr,
                   buffers.expert_out + (wave.begin + done) * hidden, hidden};
    groups[i] = {{buffers.gate + done * width, width, nullptr, wave.counts[i]},
                 {products + i, 1}};
    done += wave.counts[i];
  }
  MultiplyGroups(step, {groups, static_cast<size_t>(wave.num)}, step.compute,
                 next);
}

// The outputs of the wave's choices go to their places in expert_out. `next`:
// of the products after the wave.
void RunWave(StepContext& step, const LoadedMoeFfn& weights,
             ExpertStore& experts, Wave& wave, NextWeights next) {
  const auto num = static_cast<size_t>(wave.num);
  experts.Acquire(weights, {wave.experts, num}, {wave.loaded, num});
  MultiplyIn(step, wave);
  const int64_t width = step.sizes.intermediate;
  const kernels::SwigluArgs swiglu = {.gate = step.buffers.gate,
                                      .gate_stride = width,
                                      .up = step.buffers.up,
                                      .up_stride = width,
                                      .n = weights.intermediate,
                                      .y = step.buffers.gate,
                                      .y_stride = width};
  ForRanges(step, wave.total, 4, [&](int64_t begin, int64_t end, int) {
    step.kernels->swiglu(swiglu, begin, end);
  });
  MultiplyOut(step, wave, next);
}

// Sums the outputs of each row's experts in the order of their rank.
void Combine(StepContext& step, const LoadedMoeFfn& weights) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t hidden = step.sizes.hidden;
  const int64_t chosen = weights.experts_per_token;
  ForRanges(step, step.num_rows(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* sum = buffers.normed + row * hidden;
      std::fill(sum, sum + hidden, 0.0f);
      for (int64_t rank = 0; rank < chosen; ++rank) {
        const int64_t choice = row * chosen + rank;
        step.kernels->axpy(buffers.chosen_weights[choice],
                           buffers.expert_out + buffers.chosen[choice] * hidden,
                           sum, hidden);
      }
    }
  });
}

}  // namespace

std::vector<const LoadedMatrix*> FirstWeightsOf(const LoadedMoeFfn& weights) {
  return {&weights.router};
}

void RunMoeFfn(StepContext& step, const LoadedMoeFfn& weights,
               ExpertStore& experts) {
  ActivationBuffers& buffers = step.buffers;
  NormRows(step, weights.norm, buffers.hidden, step.sizes.hidden,
           buffers.normed);
  Route(step, weights);
  SortChoices(step, weights);
  int64_t expert = 0;
  for (Wave wave = NextWave(step, weights, expert); wave.num > 0;) {
    const Wave next = NextWave(step, weights, expert);
    RunWave(step, weights, experts, wave,
            next.num > 0 ? NextWeights() : step.next_weights);
    wave = next;
  }
  Combine(step, weights);
  AddRows(step, buffers.normed);
}

}  // namespace millrace::worker
