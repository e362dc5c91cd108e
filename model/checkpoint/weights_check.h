#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/checkpoint.h"

namespace millrace::model {

// One tensor that cannot be what was meant.
struct WeightDamage {
  std::string file;
  std::string tensor;
  std::string why;
};

struct WeightsCheck {
  int64_t tensors = 0;  // read
  int64_t bytes = 0;
  std::vector<WeightDamage> damage;  // in the order of the model
};

// Reads every weight of a checkpoint once and looks for values that are not
// finite, and for norms that are zero throughout: what a cut download or a
// failing disk leaves behind. Formats without checksums allow no more.
// `progress` is called with the bytes done now and then and may return false
// to end with kCancelled. Holds a few MiB.
absl::StatusOr<WeightsCheck> CheckWeights(
    const Checkpoint& checkpoint,
    const std::function<bool(int64_t bytes_done)>& progress);

}  // namespace millrace::model
