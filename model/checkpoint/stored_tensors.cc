#include "model/checkpoint/stored_tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace::model {
namespace {

using kernels::WeightFormat;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

TensorSource SourceOf(const StoredTensor& tensor) {
  TensorSource source;
  source.name = tensor.name;
  source.file_index = tensor.file_index;
  source.offset = tensor.offset;
  source.bytes = tensor.bytes;
  return source;
}

}  // namespace

int32_t StoredTensors::AddFile(const std::string& path) {
  paths_.push_back(path);
  return static_cast<int32_t>(paths_.size()) - 1;
}

bool StoredTensors::Add(StoredTensor tensor) {
  if (!index_.emplace(tensor.name, tensors_.size()).second) {
    return false;
  }
  tensors_.push_back(std::move(tensor));
  return true;
}

const StoredTensor* StoredTensors::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

absl::Status StoredTensors::ErrorAt(const StoredTensor& tensor,
                                    absl::string_view what) const {
  return InputError(
      Printable(paths_[static_cast<size_t>(tensor.file_index)], 512),
      absl::StrCat("tensor '", Printable(tensor.name), "': ", what));
}

absl::StatusOr<const StoredTensor*> StoredTensors::Require(
    const std::string& name, const std::vector<int64_t>& shape) const {
  const StoredTensor* tensor = Find(name);
  if (tensor == nullptr) {
    return InputError(Printable(table_path_, 512),
                      absl::StrCat("tensor '", Printable(name), "' is missing"),
                      "the checkpoint is incomplete, or its configuration "
                      "belongs to another model");
  }
  if (tensor->shape != shape) {
    return ErrorAt(*tensor, absl::StrCat("has shape ", ShapeText(tensor->shape),
                                         ", the configuration asks for ",
                                         ShapeText(shape)));
  }
  return tensor;
}

absl::StatusOr<const StoredTensor*> StoredTensors::Take(
    const std::string& name, const std::vector<int64_t>& shape) const {
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor* tensor, Require(name, shape));
  if (!tensor->format.has_value()) {
    return WithHint(ErrorAt(*tensor, absl::StrCat("is of type ", tensor->type,
                                                  ", which is not supported")),
                    "use a checkpoint in F32, F16, BF16, one whose config.json "
                    "says how it is quantised (FP8, INT4, MLX, MXFP4) or, as "
                    "GGUF, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL, "
                    "MXFP4");
  }
  return tensor;
}

absl::StatusOr<Matrix> StoredTensors::TakeMatrix(const std::string& name,
                                                 int64_t rows,
                                                 int64_t cols) const {
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor* tensor,
                            Take(name, {rows, cols}));
  Matrix out;
  out.source = SourceOf(*tensor);
  out.format = *tensor->format;
  out.rows = rows;
  out.cols = cols;
  return out;
}

absl::StatusOr<Vector> StoredTensors::TakeVector(const std::string& name,
                                                 int64_t size) const {
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor* tensor, Take(name, {size}));
  if (kernels::TraitsOf(*tensor->format).block_elements != 1) {
    return ErrorAt(*tensor,
                   absl::StrCat("is of type ", tensor->type,
                                ", a vector must be F32, F16 or BF16"));
  }
  Vector out;
  out.source = SourceOf(*tensor);
  out.format = *tensor->format;
  out.size = size;
  return out;
}

absl::StatusOr<Matrix> StoredTensors::TakeSlice(
    const SliceRequest& request) const {
  MILLRACE_ASSIGN_OR_RETURN(
      const StoredTensor* tensor,
      Take(request.name,
           {request.num_slices, request.slice_rows, request.cols}));
  const int64_t row_bytes =
      kernels::StoredRowBytes(*tensor->format, request.cols);
  Matrix out;
  out.source = SourceOf(*tensor);
  out.source.offset +=
      (request.slice * request.slice_rows + request.row_begin) * row_bytes;
  out.source.bytes = request.rows * row_bytes;
  out.format = *tensor->format;
  out.rows = request.rows;
  out.cols = request.cols;
  return out;
}

}  // namespace millrace::model
