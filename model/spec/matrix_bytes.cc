#include "model/spec/matrix_bytes.h"

#include "kernels/quant/weight_format.h"

namespace millrace::model {
namespace {

using kernels::WeightFormat;

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

bool HasZeroPoints(WeightFormat format) {
  return format == WeightFormat::kInt4Zero ||
         format == WeightFormat::kInt4ZeroF16;
}

bool IsMlx8(WeightFormat format) {
  return format == WeightFormat::kMlx8 || format == WeightFormat::kMlx8F16;
}

bool IsMlx(WeightFormat format) {
  return format == WeightFormat::kMlx4 || format == WeightFormat::kMlx4F16 ||
         IsMlx8(format);
}

int64_t CodeBits(WeightFormat format) {
  return format == WeightFormat::kFp8 || IsMlx8(format) ? 8 : 4;
}

}  // namespace

bool IsInParts(WeightFormat format) {
  return format == WeightFormat::kFp8 || format == WeightFormat::kInt4 ||
         format == WeightFormat::kInt4F16 || HasZeroPoints(format) ||
         IsMlx(format);
}

int64_t SourceRowBytes(const Matrix& matrix) {
  return matrix.parts.has_value()
             ? matrix.cols * CodeBits(matrix.format) / 8
             : kernels::StoredRowBytes(matrix.format, matrix.cols);
}

int64_t ScaleElementBytes(ScaleType type) {
  switch (type) {
    case ScaleType::kF32:
      return 4;
    case ScaleType::kF16:
    case ScaleType::kBf16:
      return 2;
    case ScaleType::kE8m0:
      return 1;
  }
  return 0;
}

int64_t NumGroups(const Matrix& matrix) {
  return CeilDiv(matrix.cols, matrix.parts->group_size);
}

int64_t ScalesBytes(const Matrix& matrix) {
  const int64_t rows = matrix.format == WeightFormat::kFp8
                           ? CeilDiv(matrix.rows, kernels::kFp8ScaleCols)
                           : matrix.rows;
  return rows * NumGroups(matrix) * ScaleElementBytes(matrix.parts->scale_type);
}

int64_t OffsetsBytes(const Matrix& matrix) {
  if (HasZeroPoints(matrix.format)) {
    return CeilDiv(matrix.rows, kZeroPointRows) * NumGroups(matrix) *
           kZeroPointBytes;
  }
  return IsMlx(matrix.format) ? ScalesBytes(matrix) : 0;
}

int64_t CheckpointBytes(const Matrix& matrix) {
  int64_t bytes = matrix.source.bytes;
  if (matrix.parts.has_value()) {
    const MatrixParts& parts = *matrix.parts;
    bytes += parts.scales.bytes;
    bytes += parts.offsets.has_value() ? parts.offsets->bytes : 0;
    bytes += parts.shape.has_value() ? parts.shape->bytes : 0;
  }
  return bytes;
}

}  // namespace millrace::model
