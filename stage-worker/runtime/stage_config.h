#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "kernels/compute_mode.h"
#include "model/spec/stage_memory.h"

namespace millrace::worker {

// Everything that sizes a stage; from the plan, the same on every stage but
// the layers. Memory follows from it and the ModelSpec alone (StageMemory).
struct StageConfig {
  int64_t first_layer = 0;
  int64_t last_layer = 0;        // included
  bool holds_embedding = false;  // first stage
  bool holds_head = false;       // last stage
  kernels::ComputeMode compute = kernels::ComputeMode::kFast;
  kernels::KvType kv_type = kernels::KvType::kF16;
  int64_t context = 0;        // positions of one sequence, at most
  int64_t sequences = 1;      // worst cases that the KV pools hold
  int64_t slots = 1;          // sequence slots, >= sequences
  int64_t rows_max = 0;       // rows of one frame
  int64_t prefill_chunk = 0;  // prefill rows of one sequence in one frame, max
  int num_threads = 1;
};

// Bytes a stage allocates, by kind: the planner counts and the stage allocates
// by the one function model::StageBytesOf.
using StageMemory = model::StageBytes;

// What helps where a stage's memory cannot be had.
inline constexpr absl::string_view kStageMemoryRemedy =
    "give this stage fewer layers, or lower --context or --concurrency";

}  // namespace millrace::worker
