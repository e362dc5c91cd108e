#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/tile.h"
#include "kernels/quant/weight_format.h"

// FP8 E4M3 with one scale for 128 x 128 elements, stored and as tiles.
//   stored row  0: f32 scale[Fp8Blocks(cols)], then cols codes
//   tile        0: f32 scale[Fp8Blocks(cols)], padded to 64 bytes, then
//               quads of 4 columns, 64 bytes each; columns beyond the last are
//               0
// A tile has one scale for 128 columns, since its 16 rows lie in one block of
// 128. In a quad every 16 bytes belong to 4 rows: 8 bytes of columns 0 and 1,
// two a row, then 8 of columns 2 and 3, so that interleaving bytes gives pairs
// of columns in the order of rows.
namespace millrace::kernels {

// Columns and rows that share a scale.
inline constexpr int64_t kFp8Block = kFp8ScaleCols;
static_assert(kFp8Block % kTileRows == 0);

constexpr int64_t Fp8Blocks(int64_t size) {
  return (size + kFp8Block - 1) / kFp8Block;
}
// Offset of the codes in a tile.
constexpr int64_t Fp8CodesBegin(int64_t cols) {
  return (Fp8Blocks(cols) * 4 + 63) / 64 * 64;
}
constexpr int64_t Fp8TileBytes(int64_t cols) {
  return Fp8CodesBegin(cols) + (cols + 3) / 4 * 64;
}
// Offset of the code of (row, k) behind Fp8CodesBegin().
constexpr int64_t Fp8CodeOffset(int row, int64_t k) {
  return k / 4 * 64 + row / 4 * 16 + k % 4 / 2 * 8 + row % 4 * 2 + k % 2;
}

// See PackTile. The scales are those of the first row: the rows of a tile lie
// in one block of 128.
TileError PackFp8Tile(const std::byte* rows, int64_t row_stride, int num_rows,
                      int64_t cols, std::byte* tile);
void DecodeFp8TileRow(const std::byte* tile, int row, int64_t cols, float* out);
void DecodeFp8StoredRow(const std::byte* stored, int64_t cols, float* out);

}  // namespace millrace::kernels
