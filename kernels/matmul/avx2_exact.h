#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx2_format.h"
#include "kernels/matmul/avx2_wide.h"
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

// Column k of quad `quad` of 8 rows as weights.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m256 WeightsOf(__m256i codes,
                                                       const Scales256& scales,
                                                       int quad, int k) {
  constexpr TileLayout kLayout = LayoutOf(kFormat);
  const bool second = HasHalves(kLayout) && quad >= kNumQuads / 2;
  const __m256 scale = second ? scales.w1 : scales.w0;
  const __m256 value = ColumnOf<kFormat>(codes, k);
  if constexpr (kLayout.minimum != Minimum::kNone) {
    return _mm256_fmsub_ps(scale, value, second ? scales.wm1 : scales.wm0);
  }
  return _mm256_mul_ps(scale, value);
}

// Up to three tokens are multiplied as the weights come from memory.
template <WeightFormat kFormat, int kTokens>
void ExactFew(const PanelArgs& args) {
  using Reader = Reader256<kFormat>;
  __m256 acc[2][kTokens];
#pragma GCC unroll 3
  for (int t = 0; t < kTokens; ++t) {
    acc[0][t] = _mm256_setzero_ps();
    acc[1][t] = _mm256_setzero_ps();
  }
  const float* x =
      static_cast<const float*>(static_cast<const void*>(args.panel));
  ForEachGroup<kFormat>(
      args.tile, args.cols, true,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
        const Scales256 scales[2] = {
            Reader::ReadScales(place, six, in_record, 0),
            Reader::ReadScales(place, six, in_record, 1)};
#pragma GCC unroll 8
        for (int i = 0; i < kNumQuads; ++i) {
          const __m256i quad[2] = {
              LoadQuad<PairCodes<kFormat>>(codes, i),
              LoadQuad<PairCodes<kFormat>>(codes + 4 * kHalfRows, i)};
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
#pragma GCC unroll 2
            for (int half = 0; half < 2; ++half) {
              const __m256 w =
                  WeightsOf<kFormat>(quad[half], scales[half], i, k);
#pragma GCC unroll 3
              for (int t = 0; t < kTokens; ++t) {
                acc[half][t] =
                    _mm256_fmadd_ps(w, _mm256_set1_ps(x[t]), acc[half][t]);
              }
            }
            x += kTokens;
          }
        }
      });
#pragma GCC unroll 3
  for (int t = 0; t < kTokens; ++t) {
    _mm256_store_ps(args.sums + t * kTileRows, acc[0][t]);
    _mm256_store_ps(args.sums + t * kTileRows + kHalfRows, acc[1][t]);
  }
}

// A group of one half of a tile as floats, [32][16].
template <WeightFormat kFormat>
void ExpandHalf(const std::byte* codes, const Scales256& scales, float* w) {
#pragma GCC unroll 8
  for (int i = 0; i < kNumQuads; ++i) {
    const __m256i quad = LoadQuad<PairCodes<kFormat>>(codes, i);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      _mm256_store_ps(w + (4 * i + k) * kTileRows,
                      WeightsOf<kFormat>(quad, scales, i, k));
    }
  }
}

// For ExpandedWalk.
template <WeightFormat kWeights>
struct ExactDecoder : WideF32Decoder {
  static constexpr WeightFormat kFormat = kWeights;

  static void Expand(const std::byte* tile, int64_t cols, int64_t begin,
                     int64_t end, std::byte* out) {
    using Reader = Reader256<kFormat>;
    float* w = FloatsAt(out);
    ForGroups<kFormat>(
        tile, cols, begin / kGroup, end / kGroup, true,
        [&](const std::byte* codes, const RecordPlace& place,
            const SixBits& six,
            int64_t in_record) __attribute__((always_inline)) {
          for (int half = 0; half < 2; ++half) {
            ExpandHalf<kFormat>(codes + 4 * kHalfRows * half,
                                Reader::ReadScales(place, six, in_record, half),
                                w + kHalfRows * half);
          }
          w += kGroup * kTileRows;
        });
  }
};

template <WeightFormat kWeights>
struct ExactFewKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t tokens, int) {
    return tokens == 1   ? ExactFew<kFormat, 1>
           : tokens == 2 ? ExactFew<kFormat, 2>
                         : ExactFew<kFormat, 3>;
  }
};

template <WeightFormat kFormat>
void MatMulExact(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens < kFewestExpanded) {
    MatMulTiles<ExactFewKernel<kFormat>>(args, tile_begin, tile_end);
  } else {
    ExpandedWalk<ExactDecoder<kFormat>>(args).Run(tile_begin, tile_end);
  }
}

}  // namespace
}  // namespace millrace::kernels
