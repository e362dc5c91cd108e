#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx2_format.h"
#include "kernels/matmul/tile_walk.h"

// Exact products of quantised tiles with AVX2: weights as f32, column after
// column.
namespace millrace::kernels {
namespace {

// Column k % 4 of a quad as f32.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m256 ColumnOf(__m256i quad, int k) {
  using Codes = PairCodes<kFormat>;
  const __m256i byte =
      Codes::kSigned
          ? _mm256_srai_epi32(_mm256_slli_epi32(quad, 24 - 8 * k), 24)
          : _mm256_and_si256(_mm256_srli_epi32(quad, 8 * k),
                             _mm256_set1_epi32(255));
  return _mm256_cvtepi32_ps(
      _mm256_sub_epi32(byte, _mm256_set1_epi32(Codes::kZero)));
}

template <WeightFormat kFormat, int kTokens>
__attribute__((always_inline)) inline void AddHalfColumns(
    const std::byte* codes, const Scales256& scales, const float* x,
    int64_t stride, __m256* acc) {
  constexpr TileLayout kLayout = LayoutOf(kFormat);
#pragma GCC unroll 8
  for (int i = 0; i < kNumQuads; ++i) {
    const bool second = HasHalves(kLayout) && i >= kNumQuads / 2;
    const __m256 scale = second ? scales.w1 : scales.w0;
    const __m256i quad = LoadQuad<kFormat>(codes, i);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m256 value = ColumnOf<kFormat>(quad, k);
      __m256 w;
      if constexpr (kLayout.minimum != Minimum::kNone) {
        w = _mm256_fmsub_ps(scale, value, second ? scales.wm1 : scales.wm0);
      } else {
        w = _mm256_mul_ps(scale, value);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) {
        acc[t] = _mm256_fmadd_ps(w, _mm256_set1_ps(x[t]), acc[t]);
      }
      x += stride;
    }
  }
}

template <WeightFormat kFormat, int kTokens>
void ExactSlice(const PanelArgs& args, int half) {
  using Reader = Reader256<kFormat>;
  __m256 acc[kTokens];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    acc[t] = _mm256_setzero_ps();
  }
  const float* x =
      static_cast<const float*>(static_cast<const void*>(args.panel));
  ForEachGroup<kFormat>(
      args.tile, args.cols,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
        AddHalfColumns<kFormat, kTokens>(
            codes + 4 * kHalfRows * half,
            Reader::ReadScales(place, six, in_record, half), x, args.tokens,
            acc);
        x += kGroup * args.tokens;
      });
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    _mm256_store_ps(args.sums + t * kTileRows + kHalfRows * half, acc[t]);
  }
}

template <WeightFormat kFormat>
void ExactEightOrFewer(const PanelArgs& slice, int64_t tokens, int half) {
  switch (tokens) {
    case 1:
      return ExactSlice<kFormat, 1>(slice, half);
    case 2:
      return ExactSlice<kFormat, 2>(slice, half);
    case 3:
      return ExactSlice<kFormat, 3>(slice, half);
    case 4:
      return ExactSlice<kFormat, 4>(slice, half);
    case 5:
      return ExactSlice<kFormat, 5>(slice, half);
    case 6:
      return ExactSlice<kFormat, 6>(slice, half);
    case 7:
      return ExactSlice<kFormat, 7>(slice, half);
    default:
      return ExactSlice<kFormat, 8>(slice, half);
  }
}

template <WeightFormat kFormat>
void ExactPanel(const PanelArgs& args) {
  for (int64_t begin = 0; begin < args.tokens; begin += 8) {
    const PanelArgs slice = SliceOf(args, begin, sizeof(float));
    for (int half = 0; half < 2; ++half) {
      ExactEightOrFewer<kFormat>(slice, args.tokens - begin, half);
    }
  }
}

template <WeightFormat kWeights>
struct ExactKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t, int) { return ExactPanel<kWeights>; }
};

}  // namespace
}  // namespace millrace::kernels
