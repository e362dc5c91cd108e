// The definition of products with int8 activations.

#include <cmath>

#include "kernels/matmul/matmul_scalar.h"
#include "kernels/quant/group.h"
#include "kernels/quant/half.h"
#include "kernels/quant/tile_layout.h"

namespace millrace::kernels {
namespace {

constexpr int kHalf = kGroup / 2;

// A group of a tile, [k][row].
struct TileGroup {
  int16_t value[kGroup][kTileRows];
  float w[2][kTileRows];
  float wm[kTileRows];
};

void LoadGroup(WeightFormat format, const std::byte* tile, int64_t cols,
               int64_t group, TileGroup& out) {
  for (int row = 0; row < kTileRows; ++row) {
    const GroupValues values =
        ValuesOf(format, ReadTileGroup(format, tile, cols, row, group));
    for (int k = 0; k < kGroup; ++k) {
      out.value[k][row] = values.value[k];
    }
    out.w[0][row] = values.w[0];
    out.w[1][row] = values.w[1];
    out.wm[row] = values.wm;
  }
}

// Dot products of the 16 elements from `k_begin` on. Two products fit 16 bits:
// 2 * 128 * 127 < 2^15.
__attribute__((always_inline)) inline void DotHalf(const TileGroup& group,
                                                   const ActivationRecord& x,
                                                   int k_begin, int32_t* dot) {
  for (int row = 0; row < kTileRows; ++row) {
    dot[row] = 0;
  }
  for (int k = k_begin; k < k_begin + kHalf; k += 2) {
    for (int row = 0; row < kTileRows; ++row) {
      dot[row] += static_cast<int16_t>(group.value[k][row] * x.q[k] +
                                       group.value[k + 1][row] * x.q[k + 1]);
    }
  }
}

__attribute__((always_inline)) inline void AddGroup(ProductRule rule,
                                                    const TileGroup& group,
                                                    const ActivationRecord& x,
                                                    float* sums) {
  int32_t dot[2][kTileRows];
  DotHalf(group, x, 0, dot[0]);
  DotHalf(group, x, kHalf, dot[1]);
  for (int row = 0; row < kTileRows; ++row) {
    const float whole = static_cast<float>(dot[0][row] + dot[1][row]);
    float v = 0;
    switch (rule) {
      case ProductRule::kOneScale:
        v = group.w[0][row] * whole;
        break;
      case ProductRule::kScaleAndMinimum:
        v = std::fma(group.w[0][row], whole, group.wm[row] * x.m_float);
        break;
      case ProductRule::kTwoHalves:
        v = std::fma(group.w[1][row], static_cast<float>(dot[1][row]),
                     group.w[0][row] * static_cast<float>(dot[0][row]));
        break;
    }
    sums[row] = std::fma(v, x.d, sums[row]);
  }
}

__attribute__((always_inline)) inline void FastQuantTile(
    WeightFormat format, const std::byte* tile, int64_t cols,
    const std::byte* panel, int tokens, TileSums& sums) {
  const ProductRule rule = LayoutOf(format).rule;
  TileGroup group;
  for (int64_t g = 0; g < cols / kGroup; ++g) {
    LoadGroup(format, tile, cols, g, group);
    for (int t = 0; t < tokens; ++t) {
      const int64_t record = g * tokens + t;
      const auto x = LoadBytes<ActivationRecord>(
          panel + record * static_cast<int64_t>(sizeof(ActivationRecord)));
      AddGroup(rule, group, x, sums[t]);
    }
  }
}

void FastQuantTilePlain(WeightFormat format, const std::byte* tile,
                        int64_t cols, const std::byte* panel, int tokens,
                        TileSums& sums) {
  FastQuantTile(format, tile, cols, panel, tokens, sums);
}

MILLRACE_FUSED_TARGET void FastQuantTileFused(WeightFormat format,
                                              const std::byte* tile,
                                              int64_t cols,
                                              const std::byte* panel,
                                              int tokens, TileSums& sums) {
  FastQuantTile(format, tile, cols, panel, tokens, sums);
}

}  // namespace

const TileVersions kFastQuantTile = {FastQuantTilePlain, FastQuantTileFused};

}  // namespace millrace::kernels
