#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx512_format.h"
#include "kernels/matmul/avx512_wide.h"
#include "kernels/matmul/matmul_avx512.h"

// Exact products of quantised tiles with AVX-512: weights as f32, times f32
// activations. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// Calls column(k, w) with the weights of the columns of a group as f32.
template <WeightFormat kFormat, typename Column>
__attribute__((always_inline)) inline void ForColumns(const Codes512& codes,
                                                      const Scales512& scales,
                                                      Column column) {
  constexpr TileLayout kLayout = LayoutOf(kFormat);
  // A code in the lowest bits of 2^23 is a float that stands so far above it:
  // two steps instead of a mask, an integer difference and a conversion.
  constexpr float kUnit = 8388608.0f;
  const __m512i byte = _mm512_set1_epi32(255);
  const __m512i unit = _mm512_castps_si512(_mm512_set1_ps(kUnit));
  const __m512 zero = _mm512_set1_ps(kUnit + DotCodes<kFormat>::kZero);
#pragma GCC unroll 8
  for (int k = 0; k < kGroup; ++k) {
    const bool second = HasHalves(kLayout) && k >= kGroup / 2;
    const __m512 scale = second ? scales.w1 : scales.w0;
    constexpr int kAndOr = 0xea;
    const __m512i code = _mm512_ternarylogic_epi32(
        _mm512_srli_epi32(codes.quad[k / 4], 8 * (k % 4)), byte, unit, kAndOr);
    const __m512 value = _mm512_sub_ps(_mm512_castsi512_ps(code), zero);
    if constexpr (kLayout.minimum != Minimum::kNone) {
      column(k,
             _mm512_fmsub_ps(scale, value, second ? scales.wm1 : scales.wm0));
    } else {
      column(k, _mm512_mul_ps(scale, value));
    }
  }
}

// For ExpandedWalk.
template <WeightFormat kWeights>
struct ExactDecoder {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static constexpr int64_t kTiles = kWideTiles;
  static constexpr int64_t kColumns = 64;
  static constexpr int64_t kBytes = kColumns * kTileRows * 4;

  static void Expand(const std::byte* tile, int64_t cols, int64_t begin,
                     int64_t end, std::byte* out) {
    ForGroups<kFormat, false>(
        tile, cols, begin / kGroup, end / kGroup,
        [&](const Codes512& codes, const Scales512& scales, int64_t)
            __attribute__((always_inline)) {
              ForColumns<kFormat>(
                  codes,
                  scales, [&](int k, __m512 w) __attribute__((always_inline)) {
                    _mm512_store_ps(out + 64 * k, w);
                  });
              out += kGroup * 64;
            });
  }
  static int64_t Offset(int64_t column, int64_t tokens) {
    return column * tokens * static_cast<int64_t>(sizeof(float));
  }
  static constexpr int64_t kStepColumns = kTurnColumns;
  static int64_t PartsAhead(int64_t tokens, int64_t jobs) {
    return WidePartsAhead(tokens, jobs);
  }
  static int64_t Add(const ExpandedArgs& args) {
    return AddWidePanel(
        args, kBytes,
        static_cast<const float*>(static_cast<const void*>(args.activations)),
        args.tokens, args.columns);
  }
  static void Finish() {}
};

template <WeightFormat kFormat>
void MatMulExact(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  ExpandedWalk<ExactDecoder<kFormat>>(args).Run(tile_begin, tile_end);
}

}  // namespace
}  // namespace millrace::kernels
