#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/gguf_file.h"
#include "model/checkpoint/stored_tensors.h"

namespace millrace::model {

// A GGUF model: one file, or the parts PREFIX-00001-of-0000N.gguf.
struct GgufSet {
  std::unique_ptr<GgufFile> first;  // holds the metadata
  WeightFiles weights;
};

// `path` is the file, or the first part. InputError naming the part and the key
// or tensor.
absl::StatusOr<GgufSet> OpenGgufSet(const std::string& path);

}  // namespace millrace::model
