#pragma once

#include <cstdint>

#include "planner/costs.h"
#include "planner/model_sheet.h"
#include "planner/process_bytes.h"

namespace millrace::planner {

// Rows of a frame that scratch is sized for.
struct ScratchShape {
  int64_t rows_max = 0;
  ProcessBytes process;
};

// Scratch of a node that would run a model which the engine does not: as many
// activation buffers as a stage has for the models that it runs, each as wide
// as the widest matrix of its layers. An estimate from above. `sheet` outlives
// the function.
ScratchFunction ScratchOfSheet(const ModelSheet& sheet,
                               const ScratchShape& shape);

}  // namespace millrace::planner
