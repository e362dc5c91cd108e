#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "model/checkpoint/checkpoint.h"
#include "model/spec/model_spec.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

struct MatrixRead {
  const model::Matrix* matrix;
  std::byte* tiles;  // MatrixTileBytes(*matrix), 64-byte aligned
};
struct VectorRead {
  const model::Vector* vector;
  float* values;  // [size]
};

// Reads all tensors with several threads. The first error ends it and is
// returned; destinations are then undefined. InputError naming file and tensor
// for a short file, a scale or code that the format does not allow (with row
// and column), or a vector with a value that is not finite.
[[nodiscard]] absl::Status LoadTensors(const model::Checkpoint& checkpoint,
                                       const std::vector<MatrixRead>& matrices,
                                       const std::vector<VectorRead>& vectors,
                                       const Weights::Progress& progress,
                                       const Weights::Cancelled& cancelled);

}  // namespace millrace::worker
