#include "planner/expert_records.h"

#include <algorithm>

namespace millrace::planner {
namespace {

using kernels::WeightFormat;

constexpr int64_t kHeaderBytes = 64;
constexpr int64_t kPartAlignment = 64;
constexpr int64_t kRecordAlignment = 4096;  // of direct reads

// vq3: vectors of 8 weights, three stages of one byte each, a half-precision
// scale for a row.
constexpr int64_t kVectorWeights = 8;
constexpr int64_t kStages = 3;
constexpr int64_t kEntries = 256;
constexpr int64_t kHalfBytes = 2;

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

int64_t Vq3Bytes(const SheetMatrix& matrix) {
  const int64_t codes = matrix.rows * (matrix.cols / kVectorWeights) * kStages;
  return RoundUp(codes, kPartAlignment) +
         RoundUp(matrix.rows * kHalfBytes, kPartAlignment);
}

WeightFormat FormatOf(StoredAs format, WeightFormat kept) {
  return format == StoredAs::kQ8_0   ? WeightFormat::kQ8_0
         : format == StoredAs::kQ4_0 ? WeightFormat::kQ4_0
                                     : kept;
}

}  // namespace

const char* NameOf(StoredAs format) {
  switch (format) {
    case StoredAs::kKeep:
      return "keep";
    case StoredAs::kQ8_0:
      return "q8_0";
    case StoredAs::kQ4_0:
      return "q4_0";
    case StoredAs::kVq3:
      return "vq3";
  }
  return "";
}

PartSheet Requantised(const PartSheet& part, StoredAs format) {
  PartSheet out = part;
  for (SheetMatrix& matrix : out.matrices) {
    const WeightFormat wanted = FormatOf(format, matrix.format);
    if (matrix.may_requantise &&
        matrix.cols % kernels::TraitsOf(wanted).block_elements == 0) {
      matrix.format = wanted;
    }
  }
  return out;
}

bool CanStore(const LayerSheet& layer, StoredAs format) {
  return std::all_of(
      layer.expert.matrices.begin(), layer.expert.matrices.end(),
      [&](const SheetMatrix& matrix) {
        const int64_t block =
            format == StoredAs::kVq3
                ? kVectorWeights
                : kernels::TraitsOf(FormatOf(format, matrix.format))
                      .block_elements;
        return matrix.cols % block == 0;
      });
}

int64_t RecordBytes(const LayerSheet& layer, StoredAs format) {
  if (layer.experts == 0) {
    return 0;
  }
  if (format != StoredAs::kVq3) {
    // Tiles are multiples of 64 bytes, and so are vectors in memory.
    return RecordOfKept(
        TotalsOf(Requantised(layer.expert, format)).weights_bytes);
  }
  int64_t bytes =
      kHeaderBytes + TotalsOf({{}, layer.expert.vectors}).weights_bytes;
  for (const SheetMatrix& matrix : layer.expert.matrices) {
    bytes += Vq3Bytes(matrix);
  }
  return RoundUp(bytes, kRecordAlignment);
}

int64_t RecordOfKept(int64_t expert_bytes) {
  return RoundUp(kHeaderBytes + expert_bytes, kRecordAlignment);
}

int64_t CodebookBytes(const LayerSheet& layer, StoredAs format) {
  if (format != StoredAs::kVq3 || layer.experts == 0) {
    return 0;
  }
  // One for each of the matrices that an expert has.
  return static_cast<int64_t>(layer.expert.matrices.size()) * kStages *
         kEntries * kVectorWeights * kHalfBytes;
}

}  // namespace millrace::planner
