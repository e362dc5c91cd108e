#include "model/checkpoint/weights_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "kernels/quant/tile.h"
#include "model/checkpoint/row_composer.h"
#include "model/spec/matrix_bytes.h"
#include "model/spec/tensor_walk.h"

namespace millrace::model {
namespace {

// Read at once; rows are never longer than a few MiB.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

class WeightsReader {
 public:
  WeightsReader(const Checkpoint& checkpoint,
                const std::function<bool(int64_t)>& progress)
      : checkpoint_(checkpoint), progress_(progress) {}

  absl::StatusOr<WeightsCheck> Run() {
    absl::Status status;
    // Layers may share a tensor (the divisors of the rotation).
    std::set<std::pair<int32_t, int64_t>> seen;
    ForEachTensor(checkpoint_.spec(), [&](const TensorUse& use) {
      if (status.ok() &&
          seen.emplace(use.source->file_index, use.source->offset).second) {
        status = Check(use);
      }
    });
    MILLRACE_RETURN_IF_ERROR(status);
    return std::move(out_);
  }

 private:
  absl::Status Check(const TensorUse& use);
  // The first element of a stored row that is not finite; -1: none.
  int64_t FindNotFinite(const TensorUse& use, const std::byte* stored);
  absl::Status ReadRows(const TensorUse& use, int64_t row, int64_t count);
  void Report(const TensorUse& use, std::string why) {
    const auto index = static_cast<size_t>(use.source->file_index);
    out_.damage.push_back(
        {checkpoint_.files()[index], use.source->name, std::move(why)});
  }

  const Checkpoint& checkpoint_;
  const std::function<bool(int64_t)>& progress_;
  WeightsCheck out_;
  std::vector<std::byte> stored_;
  std::vector<float> row_;
};

int64_t WeightsReader::FindNotFinite(const TensorUse& use,
                                     const std::byte* stored) {
  row_.resize(static_cast<size_t>(use.cols));
  kernels::DecodeStoredRow(use.format, stored, use.cols, row_.data());
  // 0 for every finite value, NaN for the others.
  float sum = 0;
  for (const float value : row_) {
    sum += value - value;
  }
  if (sum == 0) {
    return -1;
  }
  const auto found = std::find_if(row_.begin(), row_.end(), [](float value) {
    return !std::isfinite(value);
  });
  return found - row_.begin();
}

absl::Status WeightsReader::ReadRows(const TensorUse& use, int64_t row,
                                     int64_t count) {
  const int64_t row_bytes = kernels::StoredRowBytes(use.format, use.cols);
  stored_.resize(static_cast<size_t>(count * row_bytes));
  return use.matrix != nullptr
             ? ReadStoredRows(checkpoint_, *use.matrix, row, count,
                              absl::MakeSpan(stored_))
             : checkpoint_.Read(use.source->file_index, use.source->offset,
                                absl::MakeSpan(stored_));
}

absl::Status WeightsReader::Check(const TensorUse& use) {
  const int64_t rows = std::max<int64_t>(1, use.rows);
  const int64_t row_bytes = kernels::StoredRowBytes(use.format, use.cols);
  const int64_t rows_at_once = std::clamp<int64_t>(
      kPieceBytes / std::max<int64_t>(1, row_bytes), 1, rows);
  const int64_t bytes =
      use.matrix != nullptr ? CheckpointBytes(*use.matrix) : use.source->bytes;
  const int64_t bytes_before = out_.bytes;
  bool damaged = false;
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    const int64_t count = std::min(rows_at_once, rows - row);
    const absl::Status read = ReadRows(use, row, count);
    if (!read.ok()) {
      Report(use, WhatOf(read));
      return absl::OkStatus();
    }
    for (int64_t i = 0; i < count && !damaged; ++i) {
      const int64_t column = FindNotFinite(use, stored_.data() + i * row_bytes);
      if (column >= 0) {
        Report(use, absl::StrCat("row ", row + i, " column ", column,
                                 " holds a value that is not finite"));
        damaged = true;
      }
    }
    out_.bytes = bytes_before + bytes * (row + count) / rows;
    if (!progress_(out_.bytes)) {
      return absl::CancelledError("verification was interrupted");
    }
  }
  ++out_.tensors;
  const bool is_vector = use.rows == 0;
  const bool zero = std::all_of(row_.begin(), row_.end(),
                                [](float value) { return value == 0; });
  const bool is_bias =
      use.source->name.size() > 5 &&
      use.source->name.substr(use.source->name.size() - 5) == ".bias";
  if (is_vector && !is_bias && !damaged && zero) {
    Report(use, "holds nothing but zeros");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WeightsCheck> CheckWeights(
    const Checkpoint& checkpoint,
    const std::function<bool(int64_t bytes_done)>& progress) {
  return WeightsReader(checkpoint, progress).Run();
}

}  // namespace millrace::model
