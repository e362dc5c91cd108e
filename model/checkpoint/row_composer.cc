#include "model/checkpoint/row_composer.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "kernels/quant/half.h"
#include "kernels/quant/stored_block.h"
#include "model/spec/matrix_bytes.h"

namespace millrace::model {
namespace {

using kernels::LoadBytes;
using kernels::StoreBytes;
using kernels::WeightFormat;

// Columns of a stored block, and the bytes of its scale and of its offset in
// the formats that have 16-bit ones.
constexpr int64_t kBlock = 32;
constexpr int64_t kScaleBytes = 2;

// Zero points 0 to 15 as numbers of the scale's type.
using ZeroTable = std::array<uint16_t, 16>;

constexpr ZeroTable MakeZeroTable(int exponent_bias, int mantissa_bits) {
  ZeroTable table = {};
  for (unsigned zero = 1; zero < table.size(); ++zero) {
    const int exponent = std::bit_width(zero) - 1;
    const unsigned fraction = zero - (1u << exponent);
    table[zero] = static_cast<uint16_t>(
        static_cast<unsigned>(exponent + exponent_bias) << mantissa_bits |
        fraction << (mantissa_bits - exponent));
  }
  return table;
}
constexpr ZeroTable kBf16Zeros = MakeZeroTable(127, 7);
constexpr ZeroTable kF16Zeros = MakeZeroTable(15, 10);
static_assert(kBf16Zeros[15] == 0x4170 && kF16Zeros[15] == 0x4b80);

class Composer {
 public:
  Composer(const Checkpoint& checkpoint, const Matrix& matrix,
           int64_t row_begin, int64_t num_rows)
      : checkpoint_(checkpoint),
        matrix_(matrix),
        parts_(*matrix.parts),
        groups_(NumGroups(matrix)),
        row_begin_(row_begin),
        num_rows_(num_rows) {}

  absl::Status Run(absl::Span<std::byte> out);

 private:
  // `bytes` from `offset` within a part.
  absl::Status ReadPart(const TensorSource& part, int64_t offset, int64_t bytes,
                        std::vector<std::byte>& to) const {
    to.resize(static_cast<size_t>(bytes));
    return checkpoint_.Read(part.file_index, part.offset + offset,
                            absl::MakeSpan(to));
  }
  absl::Status CheckShape() const;
  absl::Status ReadScales();
  absl::Status ReadOffsets();
  // Rows of scales in front of that of `row`, in scales_.
  [[nodiscard]] int64_t ScaleRow(int64_t row) const {
    return matrix_.format == WeightFormat::kFp8
               ? row / kernels::kFp8ScaleCols -
                     row_begin_ / kernels::kFp8ScaleCols
               : row - row_begin_;
  }
  void ComposeFp8(int64_t row, const std::byte* codes, std::byte* to) const;
  void ComposeMxfp4(int64_t row, const std::byte* codes, std::byte* to) const;
  void ComposeBlocks(int64_t row, const std::byte* codes, std::byte* to) const;
  [[nodiscard]] uint16_t OffsetOf(int64_t row, int64_t group) const;

  const Checkpoint& checkpoint_;
  const Matrix& matrix_;
  const MatrixParts& parts_;
  const int64_t groups_;
  const int64_t row_begin_;
  const int64_t num_rows_;
  std::vector<std::byte> scales_;
  std::vector<std::byte> offsets_;
};

absl::Status Composer::CheckShape() const {
  const TensorSource& shape = *parts_.shape;
  std::vector<std::byte> bytes;
  MILLRACE_RETURN_IF_ERROR(ReadPart(shape, 0, shape.bytes, bytes));
  const bool wide = shape.bytes == 16;
  const int64_t rows = wide ? LoadBytes<int64_t>(bytes.data())
                            : LoadBytes<int32_t>(bytes.data());
  const int64_t cols = wide ? LoadBytes<int64_t>(bytes.data() + 8)
                            : LoadBytes<int32_t>(bytes.data() + 4);
  if (rows == matrix_.rows && cols == matrix_.cols) {
    return absl::OkStatus();
  }
  return InputError(
      Printable(checkpoint_.files()[static_cast<size_t>(shape.file_index)],
                512),
      absl::StrCat("tensor '", Printable(shape.name), "': holds [", rows, ", ",
                   cols, "], the weight is [", matrix_.rows, ", ", matrix_.cols,
                   "]"),
      "the file is damaged or of another model: copy or convert it again");
}

absl::Status Composer::ReadScales() {
  const int64_t row_bytes = groups_ * ScaleElementBytes(parts_.scale_type);
  int64_t first = row_begin_;
  int64_t count = num_rows_;
  if (matrix_.format == WeightFormat::kFp8) {
    first = row_begin_ / kernels::kFp8ScaleCols;
    count = ScaleRow(row_begin_ + num_rows_ - 1) + 1;
  }
  return ReadPart(parts_.scales, first * row_bytes, count * row_bytes, scales_);
}

absl::Status Composer::ReadOffsets() {
  const bool zeros = matrix_.format == WeightFormat::kInt4Zero ||
                     matrix_.format == WeightFormat::kInt4ZeroF16;
  if (!zeros) {
    const int64_t row_bytes = groups_ * kScaleBytes;
    return ReadPart(*parts_.offsets, row_begin_ * row_bytes,
                    num_rows_ * row_bytes, offsets_);
  }
  const int64_t first = row_begin_ / kZeroPointRows;
  const int64_t last = (row_begin_ + num_rows_ - 1) / kZeroPointRows;
  const int64_t row_bytes = groups_ * kZeroPointBytes;
  return ReadPart(*parts_.offsets, first * row_bytes,
                  (last - first + 1) * row_bytes, offsets_);
}

// The bias of a group, or its zero point as a number.
uint16_t Composer::OffsetOf(int64_t row, int64_t group) const {
  if (matrix_.format != WeightFormat::kInt4Zero &&
      matrix_.format != WeightFormat::kInt4ZeroF16) {
    return LoadBytes<uint16_t>(
        offsets_.data() + ((row - row_begin_) * groups_ + group) * kScaleBytes);
  }
  const int64_t word_row = row / kZeroPointRows - row_begin_ / kZeroPointRows;
  const auto word = LoadBytes<uint32_t>(
      offsets_.data() + (word_row * groups_ + group) * kZeroPointBytes);
  const ZeroTable& zeros =
      matrix_.format == WeightFormat::kInt4Zero ? kBf16Zeros : kF16Zeros;
  return zeros[word >> 4 * (row % kZeroPointRows) & 15];
}

void Composer::ComposeFp8(int64_t row, const std::byte* codes,
                          std::byte* to) const {
  // First the codes, which may lie where the scales go.
  std::memmove(to + groups_ * 4, codes, static_cast<size_t>(matrix_.cols));
  const int64_t element = ScaleElementBytes(parts_.scale_type);
  const std::byte* scale = scales_.data() + ScaleRow(row) * groups_ * element;
  for (int64_t group = 0; group < groups_; ++group, scale += element) {
    float value = 0;
    switch (parts_.scale_type) {
      case ScaleType::kF32:
        value = LoadBytes<float>(scale);
        break;
      case ScaleType::kF16:
        value = kernels::HalfToFloat(LoadBytes<uint16_t>(scale));
        break;
      case ScaleType::kBf16:
        value = kernels::Bf16ToFloat(LoadBytes<uint16_t>(scale));
        break;
      case ScaleType::kE8m0: {
        // 2^(code - 127); code 0 is a subnormal, 255 no number.
        const auto code = std::to_integer<uint32_t>(*scale);
        value = std::bit_cast<float>(code == 0     ? uint32_t{1} << 22
                                     : code == 255 ? 0x7fc00000
                                                   : code << 23);
        break;
      }
    }
    StoreBytes(value, to + group * 4);
  }
}

void Composer::ComposeMxfp4(int64_t row, const std::byte* codes,
                            std::byte* to) const {
  const std::byte* scales = scales_.data() + ScaleRow(row) * groups_;
  const int64_t blocks_per_group = parts_.group_size / kBlock;
  for (int64_t block = 0; block < matrix_.cols / kBlock; ++block) {
    std::byte pairs[kBlock / 2];
    std::memcpy(pairs, codes, sizeof(pairs));
    to[0] = scales[block / blocks_per_group];
    kernels::PairsToHalves(pairs, to + 1);
    codes += sizeof(pairs);
    to += 1 + sizeof(pairs);
  }
}

void Composer::ComposeBlocks(int64_t row, const std::byte* codes,
                             std::byte* to) const {
  const std::byte* scales =
      scales_.data() + ScaleRow(row) * groups_ * kScaleBytes;
  const int64_t blocks_per_group = parts_.group_size / kBlock;
  const int64_t code_bytes = SourceRowBytes(matrix_) / (matrix_.cols / kBlock);
  for (int64_t block = 0; block < matrix_.cols / kBlock; ++block) {
    const int64_t group = block / blocks_per_group;
    // First the codes, which may lie where the scale goes.
    std::byte* code_to =
        to + kScaleBytes + (parts_.offsets.has_value() ? kScaleBytes : 0);
    std::memmove(code_to, codes, static_cast<size_t>(code_bytes));
    std::memcpy(to, scales + group * kScaleBytes, kScaleBytes);
    if (parts_.offsets.has_value()) {
      StoreBytes(OffsetOf(row, group), to + kScaleBytes);
    }
    codes += code_bytes;
    to = code_to + code_bytes;
  }
}

absl::Status Composer::Run(absl::Span<std::byte> out) {
  if (row_begin_ == 0 && parts_.shape.has_value()) {
    MILLRACE_RETURN_IF_ERROR(CheckShape());
  }
  MILLRACE_RETURN_IF_ERROR(ReadScales());
  if (parts_.offsets.has_value()) {
    MILLRACE_RETURN_IF_ERROR(ReadOffsets());
  }
  // Codes go to the end of `out`. A composed block is never shorter than its
  // codes, so that composing from the front never writes over a block whose
  // codes have not been moved; no second buffer is needed.
  const int64_t code_bytes = SourceRowBytes(matrix_);
  const int64_t row_bytes =
      kernels::StoredRowBytes(matrix_.format, matrix_.cols);
  const absl::Span<std::byte> codes =
      out.last(static_cast<size_t>(num_rows_ * code_bytes));
  MILLRACE_RETURN_IF_ERROR(
      checkpoint_.Read(matrix_.source.file_index,
                       matrix_.source.offset + row_begin_ * code_bytes, codes));
  for (int64_t i = 0; i < num_rows_; ++i) {
    const std::byte* from = codes.data() + i * code_bytes;
    std::byte* to = out.data() + i * row_bytes;
    if (matrix_.format == WeightFormat::kFp8) {
      ComposeFp8(row_begin_ + i, from, to);
    } else if (matrix_.format == WeightFormat::kMxfp4) {
      ComposeMxfp4(row_begin_ + i, from, to);
    } else {
      ComposeBlocks(row_begin_ + i, from, to);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadStoredRows(const Checkpoint& checkpoint, const Matrix& matrix,
                            int64_t row_begin, int64_t num_rows,
                            absl::Span<std::byte> out) {
  if (matrix.parts.has_value()) {
    return Composer(checkpoint, matrix, row_begin, num_rows).Run(out);
  }
  return checkpoint.Read(
      matrix.source.file_index,
      matrix.source.offset + row_begin * SourceRowBytes(matrix), out);
}

}  // namespace millrace::model
