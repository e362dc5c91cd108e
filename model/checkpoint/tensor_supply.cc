#include "model/checkpoint/tensor_supply.h"

namespace millrace::model {

absl::StatusOr<Matrix> AssumedTensors::TakeMatrix(const std::string& name,
                                                  int64_t rows,
                                                  int64_t cols) const {
  Matrix out;
  out.source.name = name;
  out.source.bytes = rows * kernels::StoredRowBytes(format_, cols);
  out.format = format_;
  out.rows = rows;
  out.cols = cols;
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
