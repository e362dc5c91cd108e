// The definition of products with f32 and bf16 activations.

#include <cmath>

#include "kernels/matmul/matmul_scalar.h"
#include "kernels/quant/group.h"
#include "kernels/quant/half.h"
#include "kernels/quant/tile_layout.h"

namespace millrace::kernels {
namespace {

// Elements of some columns of a tile, [column][row].
using Columns = float[kGroup][kTileRows];

uint16_t HalfAt(const std::byte* tile, int64_t index) {
  return LoadBytes<uint16_t>(tile + 2 * index);
}

float ElementAt(WeightFormat format, const std::byte* tile, int64_t k,
                int row) {
  if (format == WeightFormat::kBf16) {
    const int64_t pair = k / 2 * kTileRows + row;
    return Bf16ToFloat(HalfAt(tile, 2 * pair + k % 2));
  }
  const int64_t index = k * kTileRows + row;
  return format == WeightFormat::kF16 ? HalfToFloat(HalfAt(tile, index))
                                      : LoadBytes<float>(tile + 4 * index);
}

void LoadColumns(WeightFormat format, const std::byte* tile, int64_t cols,
                 int64_t begin, int num, Columns& columns) {
  for (int row = 0; row < kTileRows; ++row) {
    float elements[kGroup];
    if (IsQuantised(format)) {
      DecodeGroup(format,
                  ReadTileGroup(format, tile, cols, row, begin / kGroup),
                  elements);
    } else {
      for (int k = 0; k < num; ++k) {
        elements[k] = ElementAt(format, tile, begin + k, row);
      }
    }
    for (int k = 0; k < num; ++k) {
      columns[k][row] = elements[k];
    }
  }
}

__attribute__((always_inline)) inline void ExactTile(
    WeightFormat format, const std::byte* tile, int64_t cols,
    const std::byte* panel, int tokens, TileSums& sums) {
  Columns w;
  for (int64_t begin = 0; begin < cols; begin += kGroup) {
    const int num =
        static_cast<int>(cols - begin < kGroup ? cols - begin : kGroup);
    LoadColumns(format, tile, cols, begin, num, w);
    for (int t = 0; t < tokens; ++t) {
      for (int k = 0; k < num; ++k) {
        const float x =
            LoadBytes<float>(panel + ((begin + k) * tokens + t) * 4);
        for (int row = 0; row < kTileRows; ++row) {
          sums[t][row] = std::fma(w[k][row], x, sums[t][row]);
        }
      }
    }
  }
}

__attribute__((always_inline)) inline void FastBf16Tile(
    WeightFormat, const std::byte* tile, int64_t cols, const std::byte* panel,
    int tokens, TileSums& sums) {
  for (int64_t pair = 0; pair < (cols + 1) / 2; ++pair) {
    float even[kTileRows];
    float odd[kTileRows];
    for (int row = 0; row < kTileRows; ++row) {
      const int64_t index = 2 * (pair * kTileRows + row);
      even[row] = Bf16ToFloat(FlushTinyBf16(HalfAt(tile, index)));
      odd[row] = Bf16ToFloat(FlushTinyBf16(HalfAt(tile, index + 1)));
    }
    for (int t = 0; t < tokens; ++t) {
      const int64_t at = 2 * (pair * tokens + t);
      const float x_even = Bf16ToFloat(HalfAt(panel, at));
      const float x_odd = Bf16ToFloat(HalfAt(panel, at + 1));
      for (int row = 0; row < kTileRows; ++row) {
        // The odd element first: what the paired dot instruction does.
        const float sum = std::fma(odd[row], x_odd, sums[t][row]);
        sums[t][row] = std::fma(even[row], x_even, sum);
      }
    }
  }
}

void ExactTilePlain(WeightFormat format, const std::byte* tile, int64_t cols,
                    const std::byte* panel, int tokens, TileSums& sums) {
  ExactTile(format, tile, cols, panel, tokens, sums);
}

MILLRACE_FUSED_TARGET void ExactTileFused(WeightFormat format,
                                          const std::byte* tile, int64_t cols,
                                          const std::byte* panel, int tokens,
                                          TileSums& sums) {
  ExactTile(format, tile, cols, panel, tokens, sums);
}

void FastBf16TilePlain(WeightFormat format, const std::byte* tile, int64_t cols,
                       const std::byte* panel, int tokens, TileSums& sums) {
  FastBf16Tile(format, tile, cols, panel, tokens, sums);
}

MILLRACE_FUSED_TARGET void FastBf16TileFused(WeightFormat format,
                                             const std::byte* tile,
                                             int64_t cols,
                                             const std::byte* panel, int tokens,
                                             TileSums& sums) {
  FastBf16Tile(format, tile, cols, panel, tokens, sums);
}

}  // namespace

const TileVersions kExactTile = {ExactTilePlain, ExactTileFused};
const TileVersions kFastBf16Tile = {FastBf16TilePlain, FastBf16TileFused};

}  // namespace millrace::kernels
