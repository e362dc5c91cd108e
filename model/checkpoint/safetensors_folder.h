#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/stored_tensors.h"

namespace millrace::model {

// Opens model.safetensors of a folder, or the files that
// model.safetensors.index.json names. File names in the index are plain names
// inside the folder. InputError naming file and tensor.
absl::StatusOr<WeightFiles> OpenSafetensorsFolder(const std::string& folder);

}  // namespace millrace::model
