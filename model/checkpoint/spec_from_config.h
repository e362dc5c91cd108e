#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

// Layers times experts of a model that is only assumed: no file bounds it.
inline constexpr int64_t kAssumedMatricesMax = int64_t{1} << 20;

// The spec that a lone config.json describes, with weights in the type it
// names; nothing can be read through it. For planning without the weights.
// InputError naming file and key.
absl::StatusOr<ModelSpec> SpecFromConfig(const std::string& path);

}  // namespace millrace::model
