#include "planner/families/sheet_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/checkpoint/hf_config.h"
#include "model/checkpoint/tensor_supply.h"
#include "model/spec/matrix_bytes.h"

namespace millrace::planner {

using kernels::WeightFormat;

absl::StatusOr<SheetBuilder> SheetBuilder::Create(const ConfigReader& config) {
  const auto has_type = [](const JsonObject& object) {
    return object.Has("dtype") || object.Has("torch_dtype");
  };
  const auto is_quantised = [](const JsonObject& object) {
    return object.Has("quantization_config") || object.Has("quantization") ||
           object.Has("compression_config");
  };
  MILLRACE_ASSIGN_OR_RETURN(
      const WeightFormat plain,
      model::ReadHfWeightFormat(has_type(config.text()) ? config.text()
                                                        : config.whole()));
  MILLRACE_ASSIGN_OR_RETURN(
      model::HfQuantisation quantisation,
      model::HfQuantisation::Read(
          is_quantised(config.text()) ? config.text() : config.whole()));
  return SheetBuilder(config.object(), plain, std::move(quantisation));
}

void SheetBuilder::Linear(PartSheet& part, const std::string& module,
                          int64_t rows, int64_t cols) {
  const model::AssumedTensors tensors(plain_, quantisation_);
  const absl::StatusOr<model::Matrix> matrix =
      tensors.TakeMatrix(absl::StrCat(module, ".weight"), rows, cols);
  if (!matrix.ok()) {
    status_.Update(matrix.status());
    return;
  }
  if (!CheckBlocks(matrix->format, cols, module)) {
    return;
  }
  part.matrices.push_back(
      {matrix->format, rows, cols, model::CheckpointBytes(*matrix), true});
}

bool SheetBuilder::CheckBlocks(WeightFormat format, int64_t cols,
                               absl::string_view module) {
  const kernels::WeightFormatTraits& traits = kernels::TraitsOf(format);
  if (cols % traits.block_elements == 0) {
    return true;
  }
  status_.Update(InputError(
      object_,
      absl::StrCat("quantization_config: '", Printable(module),
                   "' has rows of ", cols,
                   " columns, which are no whole blocks of ", traits.name)));
  return false;
}

void SheetBuilder::Plain(PartSheet& part, int64_t rows, int64_t cols) {
  part.matrices.push_back(
      {plain_, rows, cols, rows * kernels::StoredRowBytes(plain_, cols), true});
}

void SheetBuilder::Router(PartSheet& part, int64_t rows, int64_t cols) {
  Plain(part, rows, cols);
  part.matrices.back().may_requantise = false;
}

void SheetBuilder::Packed(PartSheet& part, WeightFormat format, int64_t rows,
                          int64_t cols) {
  if (CheckBlocks(format, cols, "experts")) {
    part.matrices.push_back({format, rows, cols,
                             rows * kernels::StoredRowBytes(format, cols),
                             true});
  }
}

void SheetBuilder::Vector(PartSheet& part, int64_t size) {
  part.vectors.push_back({size, kernels::StoredRowBytes(plain_, size)});
}

void SheetBuilder::F32Vector(PartSheet& part, int64_t size) {
  part.vectors.push_back({size, size * 4});
}

}  // namespace millrace::planner
