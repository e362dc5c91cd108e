#pragma once

#include "model/spec/stage_memory.h"
#include "stage-worker/runtime/stage_config.h"

namespace millrace::worker {

// The part of a stage's configuration that its memory follows from.
model::StageShape ShapeOf(const StageConfig& config);

}  // namespace millrace::worker
