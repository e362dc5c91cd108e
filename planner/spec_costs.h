#pragma once

#include <cstdint>

#include "model/spec/kv_format.h"
#include "model/spec/model_spec.h"
#include "planner/costs.h"

namespace millrace::planner {

// How a stage keeps what it computes, as far as costs depend on it.
struct CostsShape {
  model::KvFormat kv;         // of keys and values
  int64_t prefill_chunk = 0;  // rows of one sequence in one frame, at most
};

// The costs of a model that the stage worker runs. Every byte comes from the
// functions that a stage allocates by (model/spec/stage_memory.h): summed over
// the layers of a stage, weights and KV are exactly what it allocates.
ModelCosts CostsOfSpec(const model::ModelSpec& spec, const CostsShape& shape);

// Positions that a layer with this window keeps, in whole KV blocks; 0: all.
int64_t KvPositionsMax(int64_t window, int64_t prefill_chunk);

}  // namespace millrace::planner
