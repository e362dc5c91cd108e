#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "model/checkpoint/stored_tensors.h"

namespace millrace::model {

struct SafetensorsHeader {
  int64_t header_bytes = 0;  // where the tensor bytes begin
  // By offset; file_index is 0. Together they fill the rest of the file.
  std::vector<StoredTensor> tensors;
};

// Reads and checks the header of one safetensors file: lengths, types, shapes,
// and that the tensors fill the data section without gap or overlap. InputError
// naming the file and the tensor, or "header".
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(
    const RandomAccessFile& file);

}  // namespace millrace::model
