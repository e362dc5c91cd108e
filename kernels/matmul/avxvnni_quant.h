#pragma once

#include <immintrin.h>

#include <cstddef>

#include "kernels/matmul/avx2_panel.h"
#include "kernels/matmul/byte_dot_256.h"

// Fast products of quantised tiles with AVX2 and the byte dot instruction on
// 256 bits.
namespace millrace::kernels {
namespace {

// For QuantKernel.
template <WeightFormat kWeights>
struct ByteDotSums {
  static constexpr WeightFormat kFormat = kWeights;
  using Codes = DotCodes<kWeights>;

  static constexpr bool kHalvesAbreast = true;

  template <int kHalves, int kTokens>
  __attribute__((always_inline)) static void Add(
      const std::byte* codes, const std::byte* records,
      Dots256 (&dots)[kHalves][kTokens]) {
#pragma GCC unroll 8
    for (int i = 0; i < kNumQuads; ++i) {
      const bool second = HasHalves(Codes::kLayout) && i >= kNumQuads / 2;
      __m256i quad[kHalves];
#pragma GCC unroll 2
      for (int h = 0; h < kHalves; ++h) {
        quad[h] = LoadQuad<Codes>(codes + kHalfBytes * h, i);
      }
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const __m256i x =
            _mm256_set1_epi32(LoadInt(records + t * kRecordStep + 4 * i));
#pragma GCC unroll 2
        for (int h = 0; h < kHalves; ++h) {
          __m256i& sum = second ? dots[h][t].second : dots[h][t].first;
          sum = AddByteDots(sum, quad[h], x);
        }
      }
    }
  }
};

template <WeightFormat kFormat>
using FastKernel = QuantKernel<ByteDotSums<kFormat>>;

// Sets the fast products of the formats named.
template <WeightFormat... kFormats>
void SetFast(MatMulFn* fast) {
  ((fast[static_cast<int>(kFormats)] = MatMulTiles<FastKernel<kFormats>>), ...);
}

}  // namespace
}  // namespace millrace::kernels
