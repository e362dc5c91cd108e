#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/spec/stage_memory.h"
#include "transport/frame.h"

namespace millrace::coordinator {

// Positions of one KV block, as stages and planner count them.
using model::kKvBlockPositions;

// Layers of one sliding window: a sequence takes ring_blocks blocks, or fewer
// when it is shorter than that.
struct WindowPool {
  int64_t ring_blocks = 0;  // >= 1, of one sequence
  int64_t pool_blocks = 0;  // >= 1
};

// What one stage has for sequences. Every stage has its own pools: a stage
// without attention layers binds nothing.
struct StagePool {
  std::string name;         // for messages
  int64_t full_blocks = 0;  // of its full-attention layers; 0: has none
  std::vector<WindowPool> windows;
  int64_t slots = 1;  // sequences open at a time, >= 1
};

// Bounds of what waits to be admitted.
struct QueueLimits {
  int64_t requests_max = 256;
  // Prompt and answer together. Four million positions: what the requests
  // above reach at 16 k each.
  int64_t tokens_max = int64_t{1} << 22;
  // A client that waits longer has mostly given up; its work would be wasted.
  absl::Duration age_max = absl::Minutes(2);
};

struct CoreConfig {
  std::vector<StagePool> stages;  // in the order of the route, >= 1
  int64_t context = 0;            // longest prompt + answer
  int64_t vocab_size = 0;
  // Prefill rows of one frame, at most. Short work goes in smaller pieces, so
  // that one prompt fills several stages at once.
  int64_t chunk = 512;
  int64_t rows_max = 0;  // rows of one frame, > chunk; 0: chunk + 256
  int64_t ops_max = 0;   // operations of one frame; 0: two for every slot
  // Circulating micro-batches N; 0: DefaultMicrobatches.
  int64_t microbatches = 0;
  // Rows that cost as much as reading the weights once: below it a smaller
  // chunk is not faster. About 16 on a CPU with AVX2, hundreds on a GPU.
  int64_t fixed_cost_rows = 16;
  QueueLimits queue;

  // kInvalidArgument names the field that is out of range.
  [[nodiscard]] absl::Status Validate() const;
  // The same with every 0 that stands for a default replaced. Valid only.
  [[nodiscard]] CoreConfig WithDefaults() const;
  // Sequences open at a time: what the stage with the fewest slots has.
  [[nodiscard]] int64_t Slots() const;
  // What frames of such a pipeline may hold; `hidden_size` columns.
  [[nodiscard]] transport::FrameLimits LimitsOfFrames(
      int64_t hidden_size) const;
};

// Micro-batches that fill a pipeline of `num_stages` equal stages: one for
// each, and one more when a hop or the coordinator's turn is exposed between
// two passes (not hidden behind computation). A lone stage gets one: to cut
// its batch in two would read the weights twice.
int64_t DefaultMicrobatches(int64_t num_stages, bool hops_exposed);

}  // namespace millrace::coordinator
