#include "model/checkpoint/tensor_supply.h"

#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "model/spec/matrix_bytes.h"

namespace millrace::model {
namespace {

using kernels::WeightFormat;

// The format that a scheme has beside plain weights of this one.
WeightFormat FormatOf(const WeightScheme& scheme, WeightFormat plain) {
  const bool half = plain == WeightFormat::kF16;
  switch (scheme.packing) {
    case Packing::kFp8Blocks:
      return WeightFormat::kFp8;
    case Packing::kInt4:
      if (scheme.zero_points) {
        return half ? WeightFormat::kInt4ZeroF16 : WeightFormat::kInt4Zero;
      }
      return half ? WeightFormat::kInt4F16 : WeightFormat::kInt4;
    case Packing::kMlxAffine:
      if (scheme.bits == 8) {
        return half ? WeightFormat::kMlx8F16 : WeightFormat::kMlx8;
      }
      return half ? WeightFormat::kMlx4F16 : WeightFormat::kMlx4;
    case Packing::kMxfp4:
      return WeightFormat::kMxfp4;
  }
  return plain;
}

MatrixParts PartsOf(const WeightScheme& scheme, WeightFormat plain,
                    int64_t cols) {
  MatrixParts parts;
  parts.group_size = scheme.group_size == 0 ? cols : scheme.group_size;
  parts.scale_type = scheme.packing == Packing::kFp8Blocks ? ScaleType::kF32
                     : scheme.packing == Packing::kMxfp4   ? ScaleType::kE8m0
                     : plain == WeightFormat::kF16         ? ScaleType::kF16
                                                           : ScaleType::kBf16;
  return parts;
}

}  // namespace

absl::StatusOr<Matrix> AssumedTensors::TakeMatrix(const std::string& name,
                                                  int64_t rows,
                                                  int64_t cols) const {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::optional<WeightScheme> scheme,
      quantisation_.SchemeOf(absl::StripSuffix(name, ".weight")));
  Matrix out;
  out.source.name = name;
  out.format = format_;
  out.rows = rows;
  out.cols = cols;
  if (scheme.has_value()) {
    out.format = FormatOf(*scheme, format_);
    out.parts = PartsOf(*scheme, format_, cols);
    out.parts->scales = {name, 0, 0, ScalesBytes(out)};
    if (OffsetsBytes(out) > 0) {
      out.parts->offsets = TensorSource{name, 0, 0, OffsetsBytes(out)};
    }
  }
  out.source.bytes = rows * SourceRowBytes(out);
  return out;
}

absl::StatusOr<Vector> AssumedTensors::TakeVector(const std::string& name,
                                                  int64_t size) const {
  Vector out;
  out.source.name = name;
  out.source.bytes = kernels::StoredRowBytes(format_, size);
  out.format = format_;
  out.size = size;
  return out;
}

absl::StatusOr<Matrix> AssumedTensors::TakeSlice(
    const SliceRequest& request) const {
  return TakeMatrix(request.name, request.rows, request.cols);
}

}  // namespace millrace::model
