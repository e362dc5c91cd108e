#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/asks_ahead.h"
#include "kernels/matmul/avx512_format.h"
#include "kernels/matmul/avx512_wide.h"
#include "kernels/matmul/matmul_avx512.h"

// Exact products of quantised tiles with AVX-512: weights as f32, times f32
// activations. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// The weights of column k of a group as f32.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m512 WeightsOf(const Codes512& codes,
                                                       const Scales512& scales,
                                                       int k) {
  constexpr TileLayout kLayout = LayoutOf(kFormat);
  // A code in the lowest bits of 2^23 is a float that stands so far above it:
  // two steps instead of a mask, an integer difference and a conversion.
  constexpr float kUnit = 8388608.0f;
  constexpr int kAndOr = 0xea;
  const __m512i code = _mm512_ternarylogic_epi32(
      _mm512_srli_epi32(codes.quad[k / 4], 8 * (k % 4)), _mm512_set1_epi32(255),
      _mm512_castps_si512(_mm512_set1_ps(kUnit)), kAndOr);
  const __m512 value =
      _mm512_sub_ps(_mm512_castsi512_ps(code),
                    _mm512_set1_ps(kUnit + DotCodes<kFormat>::kZero));
  const bool second = HasHalves(kLayout) && k >= kGroup / 2;
  const __m512 scale = second ? scales.w1 : scales.w0;
  if constexpr (kLayout.minimum != Minimum::kNone) {
    return _mm512_fmsub_ps(scale, value, second ? scales.wm1 : scales.wm0);
  }
  return _mm512_mul_ps(scale, value);
}

// For ExpandedWalk.
template <WeightFormat kWeights>
struct ExactDecoder : WideDecoder {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kF32;

  static void Expand(const std::byte* tile, int64_t cols, int64_t begin,
                     int64_t end, std::byte* out) {
    ForGroups<kFormat, false>(
        tile, cols, begin / kGroup, end / kGroup,
        [&](const Codes512& codes, const Scales512& scales,
            int64_t) __attribute__((always_inline)) {
#pragma GCC unroll 32
          for (int k = 0; k < kGroup; ++k) {
            _mm512_store_ps(out + 64 * k, WeightsOf<kFormat>(codes, scales, k));
          }
          out += kGroup * 64;
        });
  }
  static int64_t Offset(int64_t column, int64_t tokens) {
    return column * tokens * static_cast<int64_t>(sizeof(float));
  }
  static int64_t Add(const ExpandedArgs& args) {
    return AddWidePanel(
        args,
        static_cast<const float*>(static_cast<const void*>(args.activations)),
        args.tokens, args.columns);
  }
};

// Groups that are unpacked before they are multiplied: half a record of formats
// that unpack its scales for it.
template <WeightFormat kFormat>
constexpr int64_t GroupsOfTurn() {
  constexpr TileLayout kLayout = LayoutOf(kFormat);
  return kLayout.sub_scales == SubScales::kNone ? 1
                                                : kLayout.groups_per_record / 2;
}

// One token against kTiles tiles side by side, column by column, since the
// fused steps of one tile wait for each other. Weights are multiplied as they
// are decoded, which saves storing them.
template <WeightFormat kFormat, int kTiles, bool kAhead>
void LoneTokenPanel(const PanelArgs& args) {
  constexpr int64_t kTurn = GroupsOfTurn<kFormat>();
  Codes512 codes[kTurn][kTiles];
  Scales512 scales[kTurn][kTiles];
  __m512 acc[kTiles];
#pragma GCC unroll 4
  for (int i = 0; i < kTiles; ++i) {
    acc[i] = _mm512_setzero_ps();
  }
  const auto* x =
      static_cast<const float*>(static_cast<const void*>(args.panel));
  const int64_t groups = args.cols / kGroup;
  for (int64_t begin = 0; begin < groups; begin += kTurn) {
    const int64_t num = groups - begin < kTurn ? groups - begin : kTurn;
    for (int i = 0; i < kTiles; ++i) {
      ForGroups<kFormat, kAhead>(
          args.tile + i * args.tile_bytes, args.cols, begin, begin + num,
          [&](const Codes512& group, const Scales512& of_group, int64_t g)
              __attribute__((always_inline)) {
                codes[g - begin][i] = group;
                scales[g - begin][i] = of_group;
              });
    }
    for (int64_t g = 0; g < num; ++g) {
#pragma GCC unroll 32
      for (int k = 0; k < kGroup; ++k) {
        const __m512 value = _mm512_set1_ps(x[k]);
#pragma GCC unroll 4
        for (int i = 0; i < kTiles; ++i) {
          acc[i] = _mm512_fmadd_ps(
              WeightsOf<kFormat>(codes[g][i], scales[g][i], k), value, acc[i]);
        }
      }
      x += kGroup;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kTiles; ++i) {
    _mm512_store_ps(args.sums + i * kPanelTokens * kTileRows, acc[i]);
  }
}

template <WeightFormat kWeights>
struct LoneTokenKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static int SideTiles(int64_t) { return kWideTiles; }
  static PanelFn Choose(int64_t, int num_tiles) {
    return AsksAhead() ? Of<true>(num_tiles) : Of<false>(num_tiles);
  }

 private:
  template <bool kAhead>
  static PanelFn Of(int num_tiles) {
    return num_tiles == 1 ? LoneTokenPanel<kFormat, 1, kAhead>
                          : LoneTokenPanel<kFormat, kWideTiles, kAhead>;
  }
};

template <WeightFormat kFormat>
void MatMulExact(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens == 1) {
    MatMulTiles<LoneTokenKernel<kFormat>>(args, tile_begin, tile_end);
  } else {
    ExpandedWalk<ExactDecoder<kFormat>>(args).Run(tile_begin, tile_end);
  }
}

}  // namespace
}  // namespace millrace::kernels
