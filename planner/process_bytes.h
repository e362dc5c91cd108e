#pragma once

#include <cstdint>
#include <span>

#include "planner/costs.h"

namespace millrace::planner {

// What a worker has resident beside the weights, keys, values and scratch of
// its stages.
struct ProcessBytes {
  int64_t program = 0;
  // Frame buffers at one end of a link: between two stages, and from or to the
  // coordinator.
  int64_t stage_link = 0;
  int64_t coordinator_link = 0;

  // Of a process that holds these runs of a model of so many layers.
  [[nodiscard]] int64_t Of(std::span<const LayerRun> runs,
                           int64_t layers) const {
    int64_t bytes = program;
    for (const LayerRun& run : runs) {
      bytes += run.begin == 0 ? coordinator_link : stage_link;
      bytes += run.end == layers ? coordinator_link : stage_link;
    }
    return bytes;
  }
};

}  // namespace millrace::planner
