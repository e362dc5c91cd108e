#pragma once

#include <cstdint>

#include "model/spec/model_spec.h"
#include "model/spec/stage_memory.h"
#include "planner/costs.h"

namespace millrace::planner {

// Scratch of a node that runs a model: that of a stage for each of its runs,
// and once `process_bytes` (program, link buffers). `shape` says how a stage is
// sized; its context is that of the sequences that must fit. `spec` outlives
// the function. Remembers what it was asked; one thread.
ScratchFunction ScratchOf(const model::ModelSpec& spec,
                          const model::StageShape& shape,
                          int64_t process_bytes);

}  // namespace millrace::planner
