#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/checkpoint/checkpoint.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

// Fills `out`, num_rows * StoredRowBytes() bytes, with stored rows
// (kernels/README.md) [row_begin, row_begin + num_rows) of a matrix of the
// checkpoint's spec: read as they are, or composed of the tensors that hold
// their codes, scales and offsets. Only what belongs to these rows is read.
// Memory beside `out`: that of their scales and offsets. Any thread.
// InputError naming file and tensor where a file is cut short or a stored shape
// says something else than the spec. Codes and scales are not judged:
// kernels::PackTile() does that.
[[nodiscard]] absl::Status ReadStoredRows(const Checkpoint& checkpoint,
                                          const Matrix& matrix,
                                          int64_t row_begin, int64_t num_rows,
                                          absl::Span<std::byte> out);

}  // namespace millrace::model
