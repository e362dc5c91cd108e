#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/stored_tensors.h"

namespace millrace::model {

// SHA-256 in hex over `config`, over size and header (metadata, names, shapes,
// types and places of all tensors) of every file, and over a few bytes from the
// middle of at most 1024 tensors, spread evenly over the files: a model that
// was trained further, in files of the same shape, has another digest, and no
// model takes long to open. What is damaged elsewhere is not seen.
absl::StatusOr<std::string> CheckpointDigest(absl::string_view config,
                                             const WeightFiles& files);

}  // namespace millrace::model
