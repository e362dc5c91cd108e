#include "base/check.h"
#include "stage-worker/layers/layer.h"
#include "stage-worker/layers/products.h"

namespace millrace::worker {
namespace {

// Rows that one thread norms, rotates and stores at a time; a row of a small
// model takes well under a microsecond.
constexpr int64_t kRowsLeast = 4;

struct RowWork {
  StepContext& step;
  const LoadedAttention& weights;
  const KvLayer& kv;
  const RopeTables& ropes;
  int64_t rope_column;
};

void NormHeads(const RowWork& work, const LoadedNorm& norm, float* x,
               int64_t num_heads) {
  if (norm.weight == nullptr) {
    return;
  }
  const int64_t head_dim = work.weights.head_dim;
  const kernels::RmsNormArgs args = {.x = x,
                                     .x_stride = head_dim,
                                     .g = norm.weight,
                                     .eps = norm.eps,
                                     .n = head_dim,
                                     .y = x,
                                     .y_stride = head_dim};
  work.step.kernels->rms_norm(args, 0, num_heads);
}

void Rotate(const RowWork& work, int64_t row, float* x, int64_t num_heads) {
  if (work.weights.rope == nullptr) {
    return;
  }
  const int64_t at = row * work.ropes.stride() + work.rope_column;
  work.step.kernels->rope({.x = x,
                           .num_heads = num_heads,
                           .head_dim = work.weights.head_dim,
                           .rotary_dims = work.weights.rope->rotary_dims,
                           .interleaved = work.weights.rope->interleaved,
                           .cos = work.step.buffers.rope_cos + at,
                           .sin = work.step.buffers.rope_sin + at});
}

// Norms and rotates q and k of one row and appends k and v to the cache.
void PrepareRow(const RowWork& work, int64_t index) {
  StepContext& step = work.step;
  const LoadedAttention& weights = work.weights;
  StepRow& row = step.rows[static_cast<size_t>(index)];
  float* q = step.buffers.q + index * step.sizes.q;
  float* k = step.buffers.k + index * step.sizes.kv;
  NormHeads(work, weights.q_norm, q, weights.num_heads);
  NormHeads(work, weights.k_norm, k, weights.num_kv_heads);
  Rotate(work, index, q, weights.num_heads);
  Rotate(work, index, k, weights.num_kv_heads);
  const int64_t block = step.store_blocks[static_cast<size_t>(work.kv.group)]
                                         [static_cast<size_t>(index)];
  const bool stored = step.kernels->kv_store[static_cast<size_t>(step.kv_type)](
      {.k = k,
       .v = step.buffers.v + index * step.sizes.kv,
       .num_kv_heads = weights.num_kv_heads,
       .head_dim = weights.head_dim,
       .block = work.kv.pool + block * work.kv.block_bytes,
       .position_in_block = row.position % kernels::kKvBlockPositions});
  if (!stored && row.failure == transport::RowFailure::kNone) {
    row.failure = transport::RowFailure::kKvOverflow;
  }
}

void Attend(StepContext& step, const LoadedAttention& weights,
            const KvLayer& kv) {
  const float scale = static_cast<float>(
      1.0 / __builtin_sqrt(static_cast<double>(weights.head_dim)));
  const kernels::AttentionArgs args = {
      .q = step.buffers.q,
      .q_stride = step.sizes.q,
      .out = step.buffers.attention,
      .out_stride = step.sizes.q,
      .rows = step.attention_rows[static_cast<size_t>(kv.group)].data(),
      .num_rows = step.num_rows(),
      .num_heads = weights.num_heads,
      .num_kv_heads = weights.num_kv_heads,
      .head_dim = weights.head_dim,
      .scale = scale,
      .pool = kv.pool,
      .block_bytes = kv.block_bytes};
  const auto attend =
      step.kernels->attention[static_cast<size_t>(step.kv_type)];
  ForRanges(step, step.num_rows() * weights.num_kv_heads, 1,
            [&](int64_t begin, int64_t end, int thread) {
              attend(args, begin, end,
                     step.attention_scratch[static_cast<size_t>(thread)]);
            });
}

}  // namespace

void NormRows(StepContext& step, const LoadedNorm& norm, const float* x,
              int64_t width, float* y) {
  const kernels::RmsNormArgs args = {.x = x,
                                     .x_stride = width,
                                     .g = norm.weight,
                                     .eps = norm.eps,
                                     .n = width,
                                     .y = y,
                                     .y_stride = width};
  ForRanges(step, step.num_rows(), kRowsLeast,
            [&](int64_t begin, int64_t end, int) {
              step.kernels->rms_norm(args, begin, end);
            });
}

void AddRows(StepContext& step, const float* x) {
  const int64_t width = step.sizes.hidden;
  ForRanges(step, step.num_rows(), kRowsLeast,
            [&](int64_t begin, int64_t end, int) {
              step.kernels->add(x + begin * width,
                                step.buffers.hidden + begin * width,
                                (end - begin) * width);
            });
}

std::vector<const LoadedMatrix*> FirstWeightsOf(
    const LoadedAttention& weights) {
  return {&weights.q.weight, &weights.k.weight, &weights.v.weight};
}

void RunAttention(StepContext& step, const LoadedAttention& weights,
                  const KvLayer& kv, const RopeTables& ropes) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t hidden = step.sizes.hidden;
  NormRows(step, weights.norm, buffers.hidden, hidden, buffers.normed);
  const Product products[] = {
      {&weights.q.weight, weights.q.bias, buffers.q, step.sizes.q},
      {&weights.k.weight, weights.k.bias, buffers.k, step.sizes.kv},
      {&weights.v.weight, weights.v.bias, buffers.v, step.sizes.kv}};
  const LoadedMatrix* const after[] = {&weights.o.weight};
  Multiply(step, {buffers.normed, hidden, nullptr, step.num_rows()}, products,
           step.compute, after);
  const RowWork work = {
      step, weights, kv, ropes,
      weights.rope != nullptr ? ropes.ColumnOf(weights.rope) : 0};
  ForRanges(step, step.num_rows(), kRowsLeast,
            [&](int64_t begin, int64_t end, int) {
              for (int64_t index = begin; index < end; ++index) {
                PrepareRow(work, index);
              }
            });
  Attend(step, weights, kv);
  // The normed rows are no longer needed: the projection back reuses them.
  const Product back[] = {
      {&weights.o.weight, weights.o.bias, buffers.normed, hidden}};
  Multiply(step, {buffers.attention, step.sizes.q, nullptr, step.num_rows()},
           back, step.compute, step.next_weights);
  AddRows(step, buffers.normed);
}

}  // namespace millrace::worker
