#include "kernels/quant/fp8_tile.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/quant/fp8.h"
#include "kernels/quant/half.h"

namespace millrace::kernels {
namespace {

uint8_t CodeAt(const std::byte* from, int64_t offset) {
  return std::to_integer<uint8_t>(from[offset]);
}

float ScaleOf(const std::byte* scales, int64_t k) {
  return LoadBytes<float>(scales + k / kFp8Block * 4);
}

bool AllScalesAreFinite(const std::byte* scales, int64_t cols) {
  for (int64_t k = 0; k < cols; k += kFp8Block) {
    if (!std::isfinite(ScaleOf(scales, k))) {
      return false;
    }
  }
  return true;
}

// Four codes of a row; absent columns are 0.
uint32_t QuadOf(const std::byte* codes, int64_t k, int64_t cols) {
  uint32_t quad = 0;
  std::memcpy(&quad, codes + k,
              static_cast<size_t>(std::min<int64_t>(4, cols - k)));
  return quad;
}

// Whether one of the four is no number.
bool HasNan(uint32_t quad) {
  return (((quad & 0x7f7f7f7f) + 0x01010101) & 0x80808080) != 0;
}

}  // namespace

TileError PackFp8Tile(const std::byte* rows, int64_t row_stride, int num_rows,
                      int64_t cols, std::byte* tile) {
  const int64_t scale_bytes = Fp8Blocks(cols) * 4;
  std::memset(tile, 0, static_cast<size_t>(Fp8TileBytes(cols)));
  std::memcpy(tile, rows, static_cast<size_t>(scale_bytes));
  if (!AllScalesAreFinite(tile, cols)) {
    return TileError::kBadScale;
  }
  const std::byte* codes = rows + scale_bytes;
  bool valid = true;
  for (int64_t k = 0; k < cols; k += 4) {
    for (int row = 0; row < num_rows; ++row) {
      const uint32_t quad = QuadOf(codes + row * row_stride, k, cols);
      std::byte* to = tile + Fp8CodesBegin(cols) + Fp8CodeOffset(row, k);
      StoreBytes(static_cast<uint16_t>(quad), to);
      StoreBytes(static_cast<uint16_t>(quad >> 16), to + 8);
      valid &= !HasNan(quad);
    }
  }
  return valid ? TileError::kNone : TileError::kBadCode;
}

void DecodeFp8TileRow(const std::byte* tile, int row, int64_t cols,
                      float* out) {
  const std::byte* codes = tile + Fp8CodesBegin(cols);
  for (int64_t k = 0; k < cols; ++k) {
    out[k] =
        Fp8ToFloat(CodeAt(codes, Fp8CodeOffset(row, k))) * ScaleOf(tile, k);
  }
}

void DecodeFp8StoredRow(const std::byte* stored, int64_t cols, float* out) {
  const std::byte* codes = stored + Fp8Blocks(cols) * 4;
  for (int64_t k = 0; k < cols; ++k) {
    const uint8_t code = CodeAt(codes, k);
    out[k] = IsFp8Nan(code) ? NAN : Fp8ToFloat(code) * ScaleOf(stored, k);
  }
}

}  // namespace millrace::kernels
