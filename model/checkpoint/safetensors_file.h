#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "model/checkpoint/stored_tensors.h"

namespace millrace::model {

struct SafetensorsHeader {
  int64_t header_bytes = 0;           // where the tensor bytes begin
  std::vector<StoredTensor> tensors;  // by offset; file_index is 0
  // OK where the tensors fill the rest of the file, as they must. A gap is an
  // error only after the tensors have been looked for: the one that is missing
  // says more.
  absl::Status gap;
};

// Reads and checks the header of one safetensors file: lengths, types, shapes,
// and that the tensors lie in the data section without overlap. InputError
// naming the file and the tensor, or "header".
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(
    const RandomAccessFile& file);

}  // namespace millrace::model
