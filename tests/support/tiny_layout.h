#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/tiny_models.h"
#include "tests/support/tiny_weights.h"

namespace millrace::testing {

// One tensor of a tiny model under both names. A stack of experts has one
// TinyRows per matrix that its rows come from.
struct TinyTensor {
  std::string name;             // Hugging Face
  std::string gguf_name;        // empty: not in GGUF files under this form
  std::vector<int64_t> shape;   // row-major
  std::vector<TinyRows> parts;  // concatenated, parts.size() * rows rows
  int64_t rows_per_part = 1;
  bool router = false;
  // GGUF llama and smollm3: rows of q and k go in pairs.
  bool rotated_rows = false;
};

// All tensors in the order of a file. `stacked`: experts in one tensor a
// matrix, as in GGUF; else as the options say.
std::vector<TinyTensor> TinyTensors(const TinyModel& model, bool stacked);

}  // namespace millrace::testing
