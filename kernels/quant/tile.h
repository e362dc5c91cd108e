#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/weight_format.h"

namespace millrace::kernels {

// Sixteen rows of a matrix lie in the lanes of a tile; see README.md.
inline constexpr int kTileRows = 16;

constexpr int64_t NumTiles(int64_t rows) {
  return (rows + kTileRows - 1) / kTileRows;
}

// Bytes of one tile of 16 rows x cols, a multiple of 64.
int64_t TileBytes(WeightFormat format, int64_t cols);

// Why a row could not be laid out.
enum class TileError : uint8_t {
  kNone,
  kBadScale,  // a scale or minimum that is no finite number (E8M0: 255)
  kBadCode,   // FP8: a code that is no number
};

// Re-lays `num_rows` (1..16) stored rows out as one tile; missing rows become
// zero codes and zero scales.
//   rows  stored rows, `row_stride` bytes apart, any alignment
//   tile  TileBytes(format, cols), 64-byte aligned
// BF16 elements below 2^-50 in magnitude are kept as they are: exact products
// and embedding rows need them; the fast product flushes on both sides.
TileError PackTile(WeightFormat format, const std::byte* rows,
                   int64_t row_stride, int num_rows, int64_t cols,
                   std::byte* tile);

// out[0..cols) = row `row` (0..15) of a tile as f32, by the rule for w of
// exact products (README.md); also the look-up of an embedding row.
void DecodeTileRow(WeightFormat format, const std::byte* tile, int row,
                   int64_t cols, float* out);

// The same for a stored row, without a tile; for tests and 1-D tensors.
void DecodeStoredRow(WeightFormat format, const std::byte* stored, int64_t cols,
                     float* out);

}  // namespace millrace::kernels
