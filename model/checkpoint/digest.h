#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/stored_tensors.h"

namespace millrace::model {

// SHA-256 in hex over `config`, and over size and header (metadata, names,
// shapes, types and places of all tensors) of every file. Two checkpoints that
// differ only in the values of their weights have the same digest.
absl::StatusOr<std::string> CheckpointDigest(absl::string_view config,
                                             const WeightFiles& files);

}  // namespace millrace::model
