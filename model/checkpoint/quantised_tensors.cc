#include "model/checkpoint/quantised_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/spec/matrix_bytes.h"

namespace millrace::model {
namespace {

using kernels::WeightFormat;

constexpr int64_t kBlock = 32;  // columns of a stored block

int64_t Fp8Blocks(int64_t size) {
  return (size + kernels::kFp8ScaleCols - 1) / kernels::kFp8ScaleCols;
}

// The rows that are wanted, of a part that has the same bytes for each row of
// the weight.
TensorSource RowsOf(const StoredTensor& tensor, const SliceRequest& slice) {
  TensorSource source;
  source.name = tensor.name;
  source.file_index = tensor.file_index;
  const int64_t row_bytes =
      tensor.bytes / (slice.num_slices * slice.slice_rows);
  source.offset =
      tensor.offset +
      (slice.slice * slice.slice_rows + slice.row_begin) * row_bytes;
  source.bytes = slice.rows * row_bytes;
  return source;
}

TensorSource WholeOf(const StoredTensor& tensor) {
  return {tensor.name, tensor.file_index, tensor.offset, tensor.bytes};
}

Matrix MatrixOf(WeightFormat format, const SliceRequest& slice) {
  Matrix out;
  out.format = format;
  out.rows = slice.rows;
  out.cols = slice.cols;
  out.parts.emplace();
  return out;
}

}  // namespace

QuantisedTensors::Wanted QuantisedTensors::WantedMatrix(const std::string& name,
                                                        int64_t rows,
                                                        int64_t cols) {
  Wanted wanted;
  wanted.module = std::string(absl::StripSuffix(name, ".weight"));
  wanted.slice = {name, 1, rows, cols, 0, 0, rows};
  return wanted;
}

absl::StatusOr<const StoredTensor*> QuantisedTensors::Part(
    const Wanted& wanted, const std::string& name, std::vector<int64_t> shape,
    std::initializer_list<absl::string_view> types) const {
  if (wanted.stacked) {
    shape.insert(shape.begin(), wanted.slice.num_slices);
  }
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor* tensor,
                            tensors_.Require(name, shape));
  if (std::find(types.begin(), types.end(), tensor->type) == types.end()) {
    return WithHint(
        tensors_.ErrorAt(*tensor,
                         absl::StrCat("is of type ", tensor->type, ", must be ",
                                      absl::StrJoin(types, " or "))),
        "the checkpoint is packed in a way that is not supported; use one "
        "in BF16 or a GGUF file");
  }
  return tensor;
}

absl::StatusOr<const StoredTensor*> QuantisedTensors::HalfPart(
    const Wanted& wanted, const std::string& name, int64_t group_size) const {
  return Part(wanted, name,
              {wanted.slice.slice_rows, wanted.slice.cols / group_size},
              {"BF16", "F16"});
}

absl::StatusOr<WeightScheme> QuantisedTensors::SchemeOf(
    const Wanted& wanted, const StoredTensor& codes) const {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<WeightScheme> scheme,
                            quantisation_.SchemeOf(wanted.module));
  if (!scheme.has_value()) {
    return WithHint(
        tensors_.ErrorAt(codes,
                         "is packed, config.json says that it is not (ignored, "
                         "or no target)"),
        "config.json belongs to another checkpoint: copy both again");
  }
  if (scheme->packing == Packing::kFp8Blocks) {
    return *scheme;
  }
  if (scheme->group_size == 0) {
    scheme->group_size = wanted.slice.cols;
  }
  if (wanted.slice.cols % kBlock != 0 ||
      wanted.slice.cols % scheme->group_size != 0) {
    return WithHint(
        tensors_.ErrorAt(codes,
                         absl::StrCat("its rows of ", wanted.slice.cols,
                                      " columns are no multiple of the "
                                      "group_size ",
                                      scheme->group_size, " and of ", kBlock)),
        "use a checkpoint with smaller groups, in BF16, or a GGUF file");
  }
  return *scheme;
}

absl::StatusOr<Matrix> QuantisedTensors::TakeFp8(
    const Wanted& wanted, const char* scales_name) const {
  const SliceRequest& slice = wanted.slice;
  MILLRACE_ASSIGN_OR_RETURN(
      const StoredTensor* codes,
      Part(wanted, slice.name, {slice.rows, slice.cols}, {"F8_E4M3"}));
  MILLRACE_ASSIGN_OR_RETURN(
      const StoredTensor* scales,
      Part(wanted, absl::StrCat(wanted.module, scales_name),
           {Fp8Blocks(slice.rows), Fp8Blocks(slice.cols)},
           {"F32", "BF16", "F16", "F8_E8M0"}));
  Matrix out = MatrixOf(WeightFormat::kFp8, slice);
  out.source = WholeOf(*codes);
  out.parts->scales = WholeOf(*scales);
  out.parts->scale_type = scales->type == "F32"    ? ScaleType::kF32
                          : scales->type == "F16"  ? ScaleType::kF16
                          : scales->type == "BF16" ? ScaleType::kBf16
                                                   : ScaleType::kE8m0;
  out.parts->group_size = kernels::kFp8ScaleCols;
  return out;
}

absl::StatusOr<Matrix> QuantisedTensors::TakeInt4(
    const Wanted& wanted, const WeightScheme& scheme) const {
  const SliceRequest& slice = wanted.slice;
  const std::string& module = wanted.module;
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor* codes,
                            Part(wanted, absl::StrCat(module, ".weight_packed"),
                                 {slice.rows, slice.cols / 8}, {"I32"}));
  if (tensors_.Has(absl::StrCat(module, ".weight_g_idx"))) {
    return WithHint(
        tensors_.ErrorAt(*codes,
                         "has its columns in another order (weight_"
                         "g_idx), which is not supported"),
        "use a checkpoint that was quantised without activation order");
  }
  // Left out, they would move every weight of the module unnoticed.
  if (!scheme.zero_points &&
      tensors_.Has(absl::StrCat(module, ".weight_zero_point"))) {
    return WithHint(
        tensors_.ErrorAt(*codes,
                         "has a weight_zero_point beside it, but config.json "
                         "says that its weights are symmetric"),
        "set \"symmetric\" to false where the checkpoint has zero points");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const StoredTensor* scales,
      HalfPart(wanted, absl::StrCat(module, ".weight_scale"),
               scheme.group_size));
  const bool half = scales->type == "F16";
  Matrix out = MatrixOf(
      scheme.zero_points
          ? (half ? WeightFormat::kInt4ZeroF16 : WeightFormat::kInt4Zero)
          : (half ? WeightFormat::kInt4F16 : WeightFormat::kInt4),
      slice);
  out.source = WholeOf(*codes);
  out.parts->scales = WholeOf(*scales);
  out.parts->scale_type = half ? ScaleType::kF16 : ScaleType::kBf16;
  out.parts->group_size = scheme.group_size;
  if (scheme.zero_points) {
    MILLRACE_ASSIGN_OR_RETURN(
        const StoredTensor* zeros,
        Part(wanted, absl::StrCat(module, ".weight_zero_point"),
             {(slice.rows + kZeroPointRows - 1) / kZeroPointRows,
              slice.cols / scheme.group_size},
             {"I32"}));
    out.parts->offsets = WholeOf(*zeros);
  }
  const std::string shape_name = absl::StrCat(module, ".weight_shape");
  if (tensors_.Has(shape_name)) {
    MILLRACE_ASSIGN_OR_RETURN(const StoredTensor* shape,
                              Part(wanted, shape_name, {2}, {"I32", "I64"}));
    out.parts->shape = WholeOf(*shape);
  }
  return out;
}

absl::StatusOr<Matrix> QuantisedTensors::TakeMlx(
    const Wanted& wanted, const WeightScheme& scheme) const {
  const SliceRequest& slice = wanted.slice;
  const std::string& module = wanted.module;
  MILLRACE_ASSIGN_OR_RETURN(
      const StoredTensor* codes,
      Part(wanted, slice.name,
           {slice.slice_rows, slice.cols * scheme.bits / 32}, {"U32"}));
  const std::string scales_name = absl::StrCat(module, ".scales");
  if (scheme.packing == Packing::kMxfp4) {
    return TakeMxfp4(wanted, *codes, scales_name);
  }
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor* scales,
                            HalfPart(wanted, scales_name, scheme.group_size));
  MILLRACE_ASSIGN_OR_RETURN(
      const StoredTensor* biases,
      HalfPart(wanted, absl::StrCat(module, ".biases"), scheme.group_size));
  if (scales->type != biases->type) {
    return tensors_.ErrorAt(
        *biases, absl::StrCat("is of type ", biases->type,
                              ", its scales are of type ", scales->type));
  }
  const bool half = scales->type == "F16";
  Matrix out = MatrixOf(
      scheme.bits == 8 ? (half ? WeightFormat::kMlx8F16 : WeightFormat::kMlx8)
                       : (half ? WeightFormat::kMlx4F16 : WeightFormat::kMlx4),
      slice);
  out.source = RowsOf(*codes, slice);
  out.parts->scales = RowsOf(*scales, slice);
  out.parts->offsets = RowsOf(*biases, slice);
  out.parts->scale_type = half ? ScaleType::kF16 : ScaleType::kBf16;
  out.parts->group_size = scheme.group_size;
  return out;
}

absl::StatusOr<Matrix> QuantisedTensors::TakeMxfp4(
    const Wanted& wanted, const StoredTensor& codes,
    const std::string& scales_name) const {
  const SliceRequest& slice = wanted.slice;
  MILLRACE_ASSIGN_OR_RETURN(
      const StoredTensor* scales,
      Part(wanted, scales_name, {slice.slice_rows, slice.cols / kBlock},
           {"U8", "F8_E8M0"}));
  Matrix out = MatrixOf(WeightFormat::kMxfp4, slice);
  out.source = RowsOf(codes, slice);
  out.parts->scales = RowsOf(*scales, slice);
  out.parts->scale_type = ScaleType::kE8m0;
  out.parts->group_size = kBlock;
  return out;
}

absl::StatusOr<Matrix> QuantisedTensors::TakeParts(const Wanted& wanted) const {
  const SliceRequest& slice = wanted.slice;
  if (quantisation_.method() == QuantisationMethod::kMxfp4) {
    const StoredTensor& found =
        *tensors_.Find(absl::StrCat(slice.name, "_blocks"));
    if (slice.cols % kBlock != 0) {
      return tensors_.ErrorAt(
          found, absl::StrCat("its rows of ", slice.cols,
                              " columns are no multiple of ", kBlock));
    }
    MILLRACE_ASSIGN_OR_RETURN(
        const StoredTensor* codes,
        Part(wanted, found.name,
             {slice.slice_rows, slice.cols / kBlock, kBlock / 2}, {"U8"}));
    return TakeMxfp4(wanted, *codes, absl::StrCat(slice.name, "_scales"));
  }
  if (quantisation_.method() == QuantisationMethod::kMlx) {
    const StoredTensor* codes = tensors_.Find(slice.name);
    if (codes == nullptr) {
      return tensors_.Require(slice.name, {}).status();
    }
    MILLRACE_ASSIGN_OR_RETURN(const WeightScheme scheme,
                              SchemeOf(wanted, *codes));
    return TakeMlx(wanted, scheme);
  }
  return quantisation_.method() == QuantisationMethod::kFp8
             ? TakeFp8(wanted, ".weight_scale_inv")
             : TakeCompressed(wanted);
}

absl::StatusOr<Matrix> QuantisedTensors::TakeCompressed(
    const Wanted& wanted) const {
  const SliceRequest& slice = wanted.slice;
  const std::string packed_name = absl::StrCat(wanted.module, ".weight_packed");
  const StoredTensor* packed = tensors_.Find(packed_name);
  const StoredTensor& found =
      packed != nullptr ? *packed : *tensors_.Find(slice.name);
  MILLRACE_ASSIGN_OR_RETURN(const WeightScheme scheme, SchemeOf(wanted, found));
  if ((packed == nullptr) != (scheme.packing == Packing::kFp8Blocks)) {
    return tensors_.ErrorAt(found,
                            "is packed in another way than config.json says");
  }
  if (packed == nullptr) {
    return TakeFp8(wanted, ".weight_scale");
  }
  if (scheme.packing == Packing::kMxfp4) {
    MILLRACE_ASSIGN_OR_RETURN(
        const StoredTensor* codes,
        Part(wanted, packed_name, {slice.rows, slice.cols / 2}, {"U8"}));
    return TakeMxfp4(wanted, *codes,
                     absl::StrCat(wanted.module, ".weight_scale"));
  }
  return TakeInt4(wanted, scheme);
}

bool QuantisedTensors::IsPacked(const Wanted& wanted) const {
  const StoredTensor* plain = tensors_.Find(wanted.slice.name);
  const bool is_fp8 = plain != nullptr && plain->type == "F8_E4M3";
  switch (quantisation_.method()) {
    case QuantisationMethod::kNone:
      return false;
    case QuantisationMethod::kFp8:
      return !wanted.stacked && is_fp8;
    case QuantisationMethod::kCompressedTensors:
      return !wanted.stacked &&
             (tensors_.Has(absl::StrCat(wanted.module, ".weight_packed")) ||
              is_fp8);
    case QuantisationMethod::kMlx:
      return tensors_.Has(absl::StrCat(wanted.module, ".scales")) ||
             (plain != nullptr && plain->type == "U32");
    case QuantisationMethod::kMxfp4:
      return wanted.stacked &&
             tensors_.Has(absl::StrCat(wanted.slice.name, "_blocks"));
  }
  return false;
}

bool QuantisedTensors::Has(absl::string_view name) const {
  if (tensors_.Has(name)) {
    return true;
  }
  Wanted wanted = WantedMatrix(std::string(name), 1, 1);
  const bool single = IsPacked(wanted);
  wanted.stacked = true;
  return single || IsPacked(wanted);
}

// Left out, they would change every weight of the module unnoticed, whichever
// of the two was meant.
absl::Status QuantisedTensors::RefuseTwoForms(const Wanted& wanted) const {
  const auto both = [&](absl::string_view a, absl::string_view b) {
    return tensors_.Has(absl::StrCat(wanted.module, a)) &&
           tensors_.Has(absl::StrCat(wanted.module, b));
  };
  const StoredTensor* plain = tensors_.Find(wanted.slice.name);
  const bool is_float =
      plain != nullptr &&
      (plain->type == "BF16" || plain->type == "F16" || plain->type == "F32");
  const bool two = both(".weight", ".weight_packed") ||
                   (is_float && (both(".weight", ".weight_scale_inv") ||
                                 both(".weight", ".scales")));
  return two ? WithHint(tensors_.ErrorAt(
                            *plain, "stands beside tensors of its packed form"),
                        "the checkpoint is of two conversions: copy it again")
             : absl::OkStatus();
}

absl::StatusOr<Matrix> QuantisedTensors::TakeMatrix(const std::string& name,
                                                    int64_t rows,
                                                    int64_t cols) const {
  const Wanted wanted = WantedMatrix(name, rows, cols);
  MILLRACE_RETURN_IF_ERROR(RefuseTwoForms(wanted));
  return IsPacked(wanted) ? TakeParts(wanted)
                          : tensors_.TakeMatrix(name, rows, cols);
}

absl::StatusOr<Matrix> QuantisedTensors::TakeSlice(
    const SliceRequest& request) const {
  Wanted wanted = WantedMatrix(request.name, 1, 1);
  wanted.slice = request;
  wanted.stacked = true;
  return IsPacked(wanted) ? TakeParts(wanted) : tensors_.TakeSlice(request);
}

}  // namespace millrace::model
