// The definition of products of FP8 tiles.

#include <cmath>

#include "kernels/matmul/matmul_scalar.h"
#include "kernels/quant/fp8.h"
#include "kernels/quant/fp8_tile.h"
#include "kernels/quant/half.h"

namespace millrace::kernels {
namespace {

// Elements of one block of a tile, [column][row].
using Block = float[kFp8Block][kTileRows];

// Codes of the columns [begin, begin + num) as numbers, without their scale.
void LoadBlock(const std::byte* tile, int64_t cols, int64_t begin, int64_t num,
               Block& out) {
  const std::byte* codes = tile + Fp8CodesBegin(cols);
  for (int64_t k = 0; k < num; ++k) {
    for (int row = 0; row < kTileRows; ++row) {
      const std::byte code = codes[Fp8CodeOffset(row, begin + k)];
      out[k][row] = Fp8ToFloat(std::to_integer<uint8_t>(code));
    }
  }
}

float ScaleOf(const std::byte* tile, int64_t begin) {
  return LoadBytes<float>(tile + begin / kFp8Block * 4);
}

int64_t ColumnsOf(int64_t cols, int64_t begin) {
  return cols - begin < kFp8Block ? cols - begin : kFp8Block;
}

__attribute__((always_inline)) inline void ExactTile(const std::byte* tile,
                                                     int64_t cols,
                                                     const std::byte* panel,
                                                     int tokens,
                                                     TileSums& sums) {
  Block block;
  for (int64_t begin = 0; begin < cols; begin += kFp8Block) {
    const int64_t num = ColumnsOf(cols, begin);
    const float scale = ScaleOf(tile, begin);
    LoadBlock(tile, cols, begin, num, block);
    for (int t = 0; t < tokens; ++t) {
      for (int64_t k = 0; k < num; ++k) {
        const float x =
            LoadBytes<float>(panel + ((begin + k) * tokens + t) * 4);
        for (int row = 0; row < kTileRows; ++row) {
          // A product and not a fused step: w is rounded once.
          const float w = block[k][row] * scale;
          sums[t][row] = std::fma(w, x, sums[t][row]);
        }
      }
    }
  }
}

// Adds the pairs of one block for one token to `sums`, which start at +0. The
// odd element of a pair goes first: what the paired dot instruction does.
// Codes need no flush: the smallest is 2^-9.
__attribute__((always_inline)) inline void AddPairs(const Block& block,
                                                    int64_t pairs,
                                                    const std::byte* x,
                                                    int64_t step, float* sums) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const float x_even = Bf16ToFloat(LoadBytes<uint16_t>(x));
    const float x_odd = Bf16ToFloat(LoadBytes<uint16_t>(x + 2));
    for (int row = 0; row < kTileRows; ++row) {
      const float sum = std::fma(block[2 * pair + 1][row], x_odd, sums[row]);
      sums[row] = std::fma(block[2 * pair][row], x_even, sum);
    }
    x += step;
  }
}

__attribute__((always_inline)) inline void FastTile(const std::byte* tile,
                                                    int64_t cols,
                                                    const std::byte* panel,
                                                    int tokens,
                                                    TileSums& sums) {
  Block block;
  for (int64_t begin = 0; begin < cols; begin += kFp8Block) {
    const int64_t pairs = (ColumnsOf(cols, begin) + 1) / 2;
    const float scale = ScaleOf(tile, begin);
    // An odd last column is paired with one of zero codes.
    LoadBlock(tile, cols, begin, 2 * pairs, block);
    for (int t = 0; t < tokens; ++t) {
      float of_block[kTileRows] = {};
      AddPairs(block, pairs, panel + (begin / 2 * tokens + t) * 4,
               int64_t{4} * tokens, of_block);
      for (int row = 0; row < kTileRows; ++row) {
        sums[t][row] = std::fma(of_block[row], scale, sums[t][row]);
      }
    }
  }
}

void ExactPlain(WeightFormat, const std::byte* tile, int64_t cols,
                const std::byte* panel, int tokens, TileSums& sums) {
  ExactTile(tile, cols, panel, tokens, sums);
}

MILLRACE_FUSED_TARGET void ExactFused(WeightFormat, const std::byte* tile,
                                      int64_t cols, const std::byte* panel,
                                      int tokens, TileSums& sums) {
  ExactTile(tile, cols, panel, tokens, sums);
}

void FastPlain(WeightFormat, const std::byte* tile, int64_t cols,
               const std::byte* panel, int tokens, TileSums& sums) {
  FastTile(tile, cols, panel, tokens, sums);
}

MILLRACE_FUSED_TARGET void FastFused(WeightFormat, const std::byte* tile,
                                     int64_t cols, const std::byte* panel,
                                     int tokens, TileSums& sums) {
  FastTile(tile, cols, panel, tokens, sums);
}

}  // namespace

const TileVersions kExactFp8Tile = {ExactPlain, ExactFused};
const TileVersions kFastFp8Tile = {FastPlain, FastFused};

}  // namespace millrace::kernels
