#pragma once

#include <cstdint>

#include "model/spec/model_spec.h"

namespace millrace::model {

// Bytes of the tensors that a weight lies in. Sizes of rows in memory, composed
// or not, are kernels::StoredRowBytes().

// Of one row of the tensor that Matrix::source names.
int64_t SourceRowBytes(const Matrix& matrix);

// INT4 packs the zero points of eight rows and one group into a word.
inline constexpr int64_t kZeroPointRows = 8;
inline constexpr int64_t kZeroPointBytes = 4;

// Whether weights of this format are always kept in parts. MXFP4 is kept in
// parts by safetensors, whole by GGUF.
bool IsInParts(kernels::WeightFormat format);

// Of the parts of a weight in parts, from its sizes, group and scale type.
int64_t ScalesBytes(const Matrix& matrix);
int64_t OffsetsBytes(const Matrix& matrix);  // 0: the format has none
int64_t ScaleElementBytes(ScaleType type);
// Scales in one row of them.
int64_t NumGroups(const Matrix& matrix);

// All that the checkpoint keeps of the weight.
int64_t CheckpointBytes(const Matrix& matrix);

}  // namespace millrace::model
