#pragma once

#include <cstdint>

#include "model/spec/model_spec.h"
#include "model/spec/stage_memory.h"
#include "planner/costs.h"
#include "planner/process_bytes.h"

namespace millrace::planner {

// Scratch of a node that runs a model: that of a stage for each of its runs,
// and what the process takes beside them. `shape` says how a stage is sized;
// its context is that of the sequences that must fit. `spec` outlives the
// function. Remembers what it was asked; one thread.
ScratchFunction ScratchOf(const model::ModelSpec& spec,
                          const model::StageShape& shape,
                          const ProcessBytes& process);

}  // namespace millrace::planner
