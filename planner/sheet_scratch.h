#pragma once

#include <cstdint>

#include "planner/costs.h"
#include "planner/model_sheet.h"
#include "planner/process_bytes.h"

namespace millrace::planner {

// What scratch is sized for.
struct ScratchShape {
  int64_t rows_max = 0;  // of a frame
  ProcessBytes process;
  // Sequences of so many positions that must fit; 0: none.
  int64_t sequences = 0;
  int64_t context = 0;
  CostsShape kept;
  int64_t slots = 0;  // of sequences
};

// Scratch of a node that would run a model which the engine does not: as many
// activation buffers as a stage has for the models that it runs, each as wide
// as the widest matrix of its layers. An estimate from above. Layers that read
// the KV of a layer on another node need a copy of it, which is sent to them:
// for the sequences that must fit it is a part of scratch. `sheet` outlives the
// function.
ScratchFunction ScratchOfSheet(const ModelSheet& sheet,
                               const ScratchShape& shape);

}  // namespace millrace::planner
