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
  float wm[2][kTileRows];
};

void LoadGroup(WeightFormat format, const std::byte* tile, int64_t cols,
               int64_t group, TileGroup& out) {
  for (int row = 0; row < kTileRows; ++row) {
    const GroupValues values =
        ValuesOf(format, ReadTileGroup(format, tile, cols, row, group));
    for (int k = 0; k < kGroup; ++k) {
      out.value[k][row] = values.value[k];
    }
    for (int half = 0; half < 2; ++half) {
      out.w[half][row] = values.w[half];
      out.wm[half][row] = values.wm[half];
    }
  }
}

// Whether two products fit 16 bits: 2 * 128 * 127 < 2^15. They do not where
// bytes are unsigned.
constexpr bool PairsFit16Bits(const TileLayout& layout) {
  return layout.code_bits < 8 || layout.value == CodeValue::kSigned;
}

// Dot products of the 16 elements from `k_begin` on; Pair holds two products.
template <typename Pair>
__attribute__((always_inline)) inline void DotHalf(const TileGroup& group,
                                                   const ActivationRecord& x,
                                                   int k_begin, int32_t* dot) {
  for (int row = 0; row < kTileRows; ++row) {
    dot[row] = 0;
  }
  for (int k = k_begin; k < k_begin + kHalf; k += 2) {
    for (int row = 0; row < kTileRows; ++row) {
      dot[row] += static_cast<Pair>(group.value[k][row] * x.q[k] +
                                    group.value[k + 1][row] * x.q[k + 1]);
    }
  }
}

// What a group adds to a row's sum, before the scale of the activations.
__attribute__((always_inline)) inline float ValueOf(ProductRule rule,
                                                    const TileGroup& group,
                                                    const ActivationRecord& x,
                                                    int row, int32_t first,
                                                    int32_t second) {
  switch (rule) {
    case ProductRule::kOneScale:
      break;
    case ProductRule::kScaleAndMinimum:
      return std::fma(group.w[0][row], static_cast<float>(first + second),
                      group.wm[0][row] * x.m_float);
    case ProductRule::kTwoHalves:
      return std::fma(group.w[1][row], static_cast<float>(second),
                      group.w[0][row] * static_cast<float>(first));
    case ProductRule::kTwoHalvesAndMinima: {
      const float m0 = static_cast<float>(x.m - x.m1);
      const float m1 = static_cast<float>(x.m1);
      const float minima =
          std::fma(group.wm[1][row], m1, group.wm[0][row] * m0);
      return std::fma(
          group.w[1][row], static_cast<float>(second),
          std::fma(group.w[0][row], static_cast<float>(first), minima));
    }
  }
  return group.w[0][row] * static_cast<float>(first + second);
}

template <typename Pair>
__attribute__((always_inline)) inline void AddGroup(ProductRule rule,
                                                    const TileGroup& group,
                                                    const ActivationRecord& x,
                                                    float* sums) {
  int32_t dot[2][kTileRows];
  DotHalf<Pair>(group, x, 0, dot[0]);
  DotHalf<Pair>(group, x, kHalf, dot[1]);
  for (int row = 0; row < kTileRows; ++row) {
    const float v = ValueOf(rule, group, x, row, dot[0][row], dot[1][row]);
    sums[row] = std::fma(v, x.d, sums[row]);
  }
}

__attribute__((always_inline)) inline void FastQuantTile(
    WeightFormat format, const std::byte* tile, int64_t cols,
    const std::byte* panel, int tokens, TileSums& sums) {
  const TileLayout& layout = LayoutOf(format);
  TileGroup group;
  for (int64_t g = 0; g < cols / kGroup; ++g) {
    LoadGroup(format, tile, cols, g, group);
    for (int t = 0; t < tokens; ++t) {
      const int64_t record = g * tokens + t;
      const auto x = LoadBytes<ActivationRecord>(
          panel + record * static_cast<int64_t>(sizeof(ActivationRecord)));
      if (PairsFit16Bits(layout)) {
        AddGroup<int16_t>(layout.rule, group, x, sums[t]);
      } else {
        AddGroup<int32_t>(layout.rule, group, x, sums[t]);
      }
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
