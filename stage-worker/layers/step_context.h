#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "model/spec/stage_memory.h"
#include "stage-worker/runtime/weights.h"
#include "transport/frame.h"

namespace millrace::worker {

// Buffers of one step; row-major f32 unless said otherwise, each row as wide as
// model::ActivationSizes says. Carved from the stage's scratch at load.
struct ActivationBuffers {
  float* hidden = nullptr;     // [rows_max, hidden], the residual stream
  float* normed = nullptr;     // [rows_max, hidden]
  float* q = nullptr;          // [rows_max, q]
  float* attention = nullptr;  // [rows_max, q]
  float* k = nullptr;          // [rows_max, kv]
  float* v = nullptr;          // [rows_max, kv]
  float* gate = nullptr;       // [ffn_rows_max, intermediate]
  float* up = nullptr;         // [ffn_rows_max, intermediate]
  std::byte* packed[kernels::kNumActivationForms] = {};  // packed_bytes each
  float* rope_cos = nullptr;  // [rows_max, rope_pairs]
  float* rope_sin = nullptr;
  float* router_logits = nullptr;   // [rows_max, experts]
  float* router_scratch = nullptr;  // [experts]
  int32_t* chosen = nullptr;        // [rows_max, experts_per_token]
  float* chosen_weights = nullptr;  // [rows_max, experts_per_token]
  int32_t* choice_rows = nullptr;   // [rows_max * experts_per_token]
  int32_t* expert_ends = nullptr;   // [experts]
  float* expert_out = nullptr;      // [rows_max * experts_per_token, hidden]
  float* logits = nullptr;          // [logit_rows_max, vocab]
};

// Keys and values of one attention layer.
struct KvLayer {
  std::byte* pool = nullptr;  // blocks, block_bytes apart
  int64_t block_bytes = 0;
  int64_t group = 0;  // index of its KvPool
};

// One row of the frame as layers see it.
struct StepRow {
  int64_t slot = 0;
  int64_t position = 0;
  // Set by the first layer that fails the row; the row is computed on.
  transport::RowFailure failure = transport::RowFailure::kNone;
};

// Weights that later products read, in their order.
using NextWeights = std::span<const LoadedMatrix* const>;

// What a layer works on during one step. Made by Stage; step thread. Nothing
// here allocates.
struct StepContext {
  const kernels::KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;
  kernels::ComputeMode compute = kernels::ComputeMode::kFast;
  kernels::KvType kv_type = kernels::KvType::kF16;
  ActivationBuffers buffers;
  model::ActivationSizes sizes;
  int64_t ffn_rows_max = 0;   // model::FfnRowsMax
  int64_t packed_bytes = 0;   // of each buffer of packed rows
  std::vector<StepRow> rows;  // capacity rows_max
  // Per KV group: where each row finds its keys; [num_groups][rows_max].
  std::vector<std::vector<kernels::AttentionRow>> attention_rows;
  // Per KV group and row: the block that takes the row's own position.
  std::vector<std::vector<int32_t>> store_blocks;
  // [num_threads] scratch of the attention kernel.
  std::vector<std::byte*> attention_scratch;
  // Of the first products after the operation that runs.
  NextWeights next_weights;
  // Nullable. Where another thread sets it, chunks that have not begun are left
  // out: the pass ends soon, and nothing that it computes is valid. A stop
  // flag, hence relaxed; who left a chunk out has seen it set, and so does who
  // joins.
  const std::atomic<bool>* cancelled = nullptr;

  [[nodiscard]] bool is_cancelled() const {
    return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
  }
  [[nodiscard]] int64_t num_rows() const {
    return static_cast<int64_t>(rows.size());
  }
};

// Runs function(begin, end, thread) over [0, count) in ranges of about equal
// size, none smaller than `least` unless it is the last; inline when one range
// is enough. Of a step that is cancelled, not over all of it.
template <typename Function>
void ForRanges(StepContext& step, int64_t count, int64_t least,
               const Function& function) {
  // Four ranges a thread even out threads of unequal speed.
  const int64_t ranges_most = int64_t{4} * step.pool->num_threads();
  const int64_t size = std::max(least, (count + ranges_most - 1) / ranges_most);
  step.pool->Run((count + size - 1) / size, [&](int64_t range, int thread) {
    if (!step.is_cancelled()) {
      function(range * size, std::min(count, (range + 1) * size), thread);
    }
  });
}

}  // namespace millrace::worker
