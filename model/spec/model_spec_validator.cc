#include "model/spec/model_spec_validator.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/spec/matrix_bytes.h"

namespace millrace::model {
namespace {

// Keeps rows * row bytes, summed over a model, below 2^63.
constexpr int64_t kSizeMax = int64_t{1} << 28;

class Validator {
 public:
  Validator(const ModelSpec& spec, const std::vector<SpecFile>& files)
      : spec_(spec), files_(files) {}

  absl::Status Run();

 private:
  [[nodiscard]] absl::Status Wrong(const TensorSource& source,
                                   absl::string_view what) const;
  [[nodiscard]] absl::Status WrongLayer(absl::string_view what) const {
    return InputError(spec_.name, absl::StrCat("layer ", layer_, ": ", what));
  }
  absl::Status CheckPlace(const TensorSource& source, int64_t bytes) const;
  absl::Status CheckMatrix(const Matrix& matrix, int64_t rows,
                           int64_t cols) const;
  absl::Status CheckParts(const Matrix& matrix, const MatrixParts& parts) const;
  absl::Status CheckVector(const Vector& vector, int64_t size) const;
  absl::Status CheckLinear(const LinearSpec& linear, int64_t rows,
                           int64_t cols) const;
  absl::Status CheckRope(const RopeSpec& rope, int64_t head_dim) const;
  absl::Status Check(const AttentionOp& op) const;
  absl::Status Check(const DenseFfnOp& op) const;
  absl::Status Check(const MoeFfnOp& op) const;

  const ModelSpec& spec_;
  const std::vector<SpecFile>& files_;
  int64_t layer_ = 0;
};

bool InRange(int64_t size) { return size >= 1 && size <= kSizeMax; }

absl::Status Validator::Wrong(const TensorSource& source,
                              absl::string_view what) const {
  const bool known = source.file_index >= 0 &&
                     source.file_index < static_cast<int64_t>(files_.size());
  return InputError(
      Printable(known ? files_[static_cast<size_t>(source.file_index)].path
                      : spec_.name,
                512),
      absl::StrCat("tensor '", Printable(source.name), "': ", what));
}

absl::Status Validator::CheckPlace(const TensorSource& source,
                                   int64_t bytes) const {
  if (source.bytes != bytes) {
    return Wrong(source, absl::StrCat("has ", source.bytes,
                                      " bytes, its sizes "
                                      "ask for ",
                                      bytes));
  }
  if (files_.empty()) {
    return absl::OkStatus();
  }
  if (source.file_index < 0 ||
      source.file_index >= static_cast<int64_t>(files_.size())) {
    return Wrong(source, absl::StrCat("lies in file ", source.file_index,
                                      " of ", files_.size()));
  }
  const int64_t size = files_[static_cast<size_t>(source.file_index)].bytes;
  if (source.offset < 0 || source.offset > size ||
      bytes > size - source.offset) {
    return Wrong(source,
                 absl::StrCat("its ", bytes, " bytes at ", source.offset,
                              " go past the end of the file at ", size));
  }
  return absl::OkStatus();
}

absl::Status Validator::CheckMatrix(const Matrix& matrix, int64_t rows,
                                    int64_t cols) const {
  if (!InRange(rows) || !InRange(cols) || matrix.rows != rows ||
      matrix.cols != cols) {
    return Wrong(matrix.source,
                 absl::StrCat("is [", matrix.rows, ", ", matrix.cols,
                              "], must be [", rows, ", ", cols, "]"));
  }
  if (static_cast<int>(matrix.format) >= kernels::kNumWeightFormats) {
    return Wrong(matrix.source, "has an unknown format");
  }
  const int32_t block = kernels::TraitsOf(matrix.format).block_elements;
  if (cols % block != 0) {
    return Wrong(
        matrix.source,
        absl::StrCat("rows of ", cols, " elements are no multiple of ", block));
  }
  if (matrix.parts.has_value()) {
    MILLRACE_RETURN_IF_ERROR(CheckParts(matrix, *matrix.parts));
  } else if (IsInParts(matrix.format)) {
    return Wrong(matrix.source, "is a weight in parts and has none");
  }
  return CheckPlace(matrix.source, rows * SourceRowBytes(matrix));
}

absl::Status Validator::CheckParts(const Matrix& matrix,
                                   const MatrixParts& parts) const {
  const bool fp8 = matrix.format == kernels::WeightFormat::kFp8;
  const bool mxfp4 = matrix.format == kernels::WeightFormat::kMxfp4;
  if (!IsInParts(matrix.format) && !mxfp4) {
    return Wrong(matrix.source, "is in parts, which its format is never");
  }
  if (fp8 ? parts.group_size != kernels::kFp8ScaleCols
          : parts.group_size < 32 || parts.group_size % 32 != 0 ||
                matrix.cols % parts.group_size != 0) {
    return Wrong(matrix.source,
                 absl::StrCat("has scales of ", parts.group_size,
                              " columns each, its rows have ", matrix.cols));
  }
  if (!fp8 && ScaleElementBytes(parts.scale_type) != (mxfp4 ? 1 : 2)) {
    return Wrong(matrix.source, "has scales of a type that its format has not");
  }
  MILLRACE_RETURN_IF_ERROR(CheckPlace(parts.scales, ScalesBytes(matrix)));
  if (parts.offsets.has_value() != (OffsetsBytes(matrix) > 0)) {
    return Wrong(matrix.source,
                 "has offsets against its format, or lacks them");
  }
  if (parts.offsets.has_value()) {
    MILLRACE_RETURN_IF_ERROR(CheckPlace(*parts.offsets, OffsetsBytes(matrix)));
  }
  return parts.shape.has_value()
             ? CheckPlace(*parts.shape, parts.shape->bytes == 8 ? 8 : 16)
             : absl::OkStatus();
}

absl::Status Validator::CheckVector(const Vector& vector, int64_t size) const {
  if (!InRange(size) || vector.size != size) {
    return Wrong(vector.source,
                 absl::StrCat("is [", vector.size, "], must be [", size, "]"));
  }
  if (static_cast<int>(vector.format) >= kernels::kNumWeightFormats ||
      kernels::TraitsOf(vector.format).block_elements != 1 ||
      vector.format == kernels::WeightFormat::kFp8) {
    return Wrong(vector.source, "is a vector in blocks");
  }
  return CheckPlace(vector.source,
                    kernels::StoredRowBytes(vector.format, size));
}

absl::Status Validator::CheckLinear(const LinearSpec& linear, int64_t rows,
                                    int64_t cols) const {
  MILLRACE_RETURN_IF_ERROR(CheckMatrix(linear.weight, rows, cols));
  return linear.bias.has_value() ? CheckVector(*linear.bias, rows)
                                 : absl::OkStatus();
}

absl::Status Validator::CheckRope(const RopeSpec& rope,
                                  int64_t head_dim) const {
  if (rope.rotary_dims < 2 || rope.rotary_dims % 2 != 0 ||
      rope.rotary_dims > head_dim) {
    return WrongLayer(absl::StrCat("rotates ", rope.rotary_dims, " of ",
                                   Counted(head_dim, "dimension")));
  }
  for (const double value :
       {rope.theta, rope.factor, rope.attention_factor, rope.beta_fast,
        rope.beta_slow, rope.low_freq_factor, rope.high_freq_factor}) {
    if (!std::isfinite(value) || value <= 0) {
      return WrongLayer(
          "has a rotary embedding with a value that is no "
          "positive number");
    }
  }
  const bool needs_context = rope.scaling == RopeScalingKind::kDynamic ||
                             rope.scaling == RopeScalingKind::kLlama3 ||
                             rope.scaling == RopeScalingKind::kYarn;
  if (needs_context && !(rope.original_context >= 1)) {
    return WrongLayer("scales its rotary embedding without the trained length");
  }
  return rope.divisors.has_value()
             ? CheckVector(*rope.divisors, rope.rotary_dims / 2)
             : absl::OkStatus();
}

absl::Status Validator::Check(const AttentionOp& op) const {
  const int64_t hidden = spec_.hidden_size;
  if (!InRange(op.num_heads) || !InRange(op.num_kv_heads) ||
      !InRange(op.head_dim) || op.num_heads % op.num_kv_heads != 0 ||
      op.window < 0) {
    return WrongLayer(absl::StrCat("has ", Counted(op.num_heads, "head"), ", ",
                                   Counted(op.num_kv_heads, "KV head"),
                                   ", head width ", op.head_dim, ", window ",
                                   op.window));
  }
  const int64_t query_rows = op.num_heads * op.head_dim;
  const int64_t key_rows = op.num_kv_heads * op.head_dim;
  MILLRACE_RETURN_IF_ERROR(CheckVector(op.norm.weight, hidden));
  MILLRACE_RETURN_IF_ERROR(CheckLinear(op.q, query_rows, hidden));
  MILLRACE_RETURN_IF_ERROR(CheckLinear(op.k, key_rows, hidden));
  MILLRACE_RETURN_IF_ERROR(CheckLinear(op.v, key_rows, hidden));
  MILLRACE_RETURN_IF_ERROR(CheckLinear(op.o, hidden, query_rows));
  for (const auto* norm : {&op.q_norm, &op.k_norm}) {
    if (norm->has_value()) {
      MILLRACE_RETURN_IF_ERROR(CheckVector((*norm)->weight, op.head_dim));
    }
  }
  return op.rope.has_value() ? CheckRope(*op.rope, op.head_dim)
                             : absl::OkStatus();
}

absl::Status Validator::Check(const DenseFfnOp& op) const {
  const int64_t hidden = spec_.hidden_size;
  const int64_t inner = op.intermediate_size;
  MILLRACE_RETURN_IF_ERROR(CheckVector(op.norm.weight, hidden));
  MILLRACE_RETURN_IF_ERROR(CheckLinear(op.gate, inner, hidden));
  MILLRACE_RETURN_IF_ERROR(CheckLinear(op.up, inner, hidden));
  return CheckLinear(op.down, hidden, inner);
}

absl::Status Validator::Check(const MoeFfnOp& op) const {
  const int64_t hidden = spec_.hidden_size;
  const int64_t inner = op.expert_intermediate_size;
  const int64_t num_experts = static_cast<int64_t>(op.experts.size());
  if (op.experts_per_token < 1 || op.experts_per_token > num_experts) {
    return WrongLayer(absl::StrCat("chooses ", op.experts_per_token, " of ",
                                   Counted(num_experts, "expert")));
  }
  MILLRACE_RETURN_IF_ERROR(CheckVector(op.norm.weight, hidden));
  MILLRACE_RETURN_IF_ERROR(CheckMatrix(op.router, num_experts, hidden));
  for (const ExpertSpec& expert : op.experts) {
    MILLRACE_RETURN_IF_ERROR(CheckMatrix(expert.gate, inner, hidden));
    MILLRACE_RETURN_IF_ERROR(CheckMatrix(expert.up, inner, hidden));
    MILLRACE_RETURN_IF_ERROR(CheckMatrix(expert.down, hidden, inner));
  }
  return absl::OkStatus();
}

absl::Status Validator::Run() {
  if (spec_.context_length < 1) {
    return InputError(spec_.name, absl::StrCat("has a context length of ",
                                               spec_.context_length));
  }
  if (spec_.layers.empty()) {
    return InputError(spec_.name, "has no layers");
  }
  MILLRACE_RETURN_IF_ERROR(
      CheckMatrix(spec_.embedding, spec_.vocab_size, spec_.hidden_size));
  MILLRACE_RETURN_IF_ERROR(
      CheckMatrix(spec_.head, spec_.vocab_size, spec_.hidden_size));
  MILLRACE_RETURN_IF_ERROR(
      CheckVector(spec_.final_norm.weight, spec_.hidden_size));
  for (const int32_t token : spec_.stop_tokens) {
    if (token < 0 || token >= spec_.vocab_size) {
      return InputError(
          spec_.name, absl::StrCat("stops at token ", token,
                                   ", the vocabulary has ", spec_.vocab_size));
    }
  }
  for (const LayerSpec& layer : spec_.layers) {
    for (const Operation& operation : layer.operations) {
      MILLRACE_RETURN_IF_ERROR(
          std::visit([this](const auto& op) { return Check(op); }, operation));
    }
    ++layer_;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateModelSpec(const ModelSpec& spec,
                               const std::vector<SpecFile>& files) {
  return Validator(spec, files).Run();
}

}  // namespace millrace::model
