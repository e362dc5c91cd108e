#pragma once

#include <immintrin.h>

#include <cstddef>

#include "kernels/matmul/avx2_panel.h"

// Fast products of quantised tiles with AVX2. vpmaddubsw saturates at 16 bits,
// so only as many of its results are added up in 16 bits as fit exactly.
namespace millrace::kernels {
namespace {

template <bool kSigned>
__attribute__((always_inline)) inline __m256i DotQuad(__m256i codes,
                                                      const std::byte* record,
                                                      int quad) {
  const __m256i x = _mm256_set1_epi32(LoadInt(record + 4 * quad));
  if constexpr (kSigned) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes),
                                _mm256_sign_epi8(x, codes));
  }
  return _mm256_maddubs_epi16(codes, x);
}

// For QuantKernel.
template <WeightFormat kWeights>
struct PairSums {
  static constexpr WeightFormat kFormat = kWeights;
  using Codes = PairCodes<kWeights>;
  static constexpr bool kHalvesAbreast = false;

  template <int kTokens>
  __attribute__((always_inline)) static void Add(const std::byte* codes,
                                                 const std::byte* records,
                                                 Dots256 (&dots)[1][kTokens]) {
    constexpr int kRun = Codes::QuadsIn16Bits();
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int begin = 0; begin < kNumQuads; begin += kRun) {
      __m256i run[kTokens];
#pragma GCC unroll 8
      for (int i = begin; i < begin + kRun; ++i) {
        const __m256i quad = LoadQuad<Codes>(codes, i);
#pragma GCC unroll 4
        for (int t = 0; t < kTokens; ++t) {
          const __m256i dot =
              DotQuad<Codes::kSigned>(quad, records + t * kRecordStep, i);
          run[t] = i == begin ? dot : _mm256_add_epi16(run[t], dot);
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        __m256i& sum = HasHalves(Codes::kLayout) && begin >= kNumQuads / 2
                           ? dots[0][t].second
                           : dots[0][t].first;
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(run[t], ones));
      }
    }
  }
};

}  // namespace
}  // namespace millrace::kernels
