#pragma once

#include <cstdint>
#include <optional>

#include "kernels/quant/weight_format.h"

namespace millrace::model {

// One element type of GGUF: the id in the file, and how blocks are stored.
struct GgmlType {
  uint32_t id;
  const char* name;  // as llama.cpp prints it, upper case
  int32_t block_elements;
  int32_t block_bytes;
  // Unset: known in size, but not computed with.
  std::optional<kernels::WeightFormat> format;
};

// Null for ids that are unknown, removed or internal to llama.cpp.
const GgmlType* FindGgmlType(uint32_t id);

}  // namespace millrace::model
