#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

// One file that a ModelSpec points into.
struct SpecFile {
  std::string path;   // for errors
  int64_t bytes = 0;  // its size
};

// Whether every size of the spec is positive, every matrix fits its operation
// and is made of whole blocks, and every tensor lies inside its file. With no
// files, places are not looked at (a spec without weights). InputError naming
// file and tensor. Whoever takes a spec from outside calls it once; code behind
// may index without checks.
[[nodiscard]] absl::Status ValidateModelSpec(
    const ModelSpec& spec, const std::vector<SpecFile>& files);

}  // namespace millrace::model
