#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace millrace::testing {

// One tensor of a reference file or of a dump, row-major.
struct ReferenceTensor {
  std::vector<int64_t> shape;
  std::vector<float> floats;      // F32
  std::vector<int32_t> integers;  // I32
};

// All tensors of a small safetensors file that holds F32 and I32 alone, read
// apart from the product's own reader.
absl::StatusOr<std::map<std::string, ReferenceTensor>> ReadTensorFile(
    const std::string& path);

// Largest |got - want| of a row (last axis) over the row's largest |want|; the
// worst row. Infinity where shapes differ or something is not a number.
double WorstRowError(const ReferenceTensor& got, const ReferenceTensor& want);

}  // namespace millrace::testing
