#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/asks_ahead.h"
#include "kernels/matmul/float_kernel.h"
#include "kernels/matmul/matmul_avx512.h"
#include "kernels/matmul/panel_choice.h"
#include "kernels/matmul/prefetch.h"

namespace millrace::kernels {
namespace {

struct FloatSource512 {
  using Sum = __m512;
  static __m512 Zero() { return _mm512_setzero_ps(); }
  static void Keep(__m512 sum, float* to) { _mm512_store_ps(to, sum); }
};

struct PairWeights512 {
  __m512 even;
  __m512 odd;
};

inline __m512 EvenOfPairs(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
inline __m512 OddOfPairs(__m512i pairs) {
  return _mm512_castsi512_ps(
      _mm512_and_si512(pairs, _mm512_set1_epi32(-65536)));
}

// bf16 below 2^-50 becomes +0 (kBf16FlushBelow).
inline __m512i FlushTiny(__m512i bf16) {
  const __m512i magnitude = _mm512_and_si512(bf16, _mm512_set1_epi16(0x7fff));
  const __mmask32 kept =
      _mm512_cmpge_epu16_mask(magnitude, _mm512_set1_epi16(0x2680));
  return _mm512_maskz_mov_epi16(kept, bf16);
}

// Few tokens: tiles side by side, so that steps do not wait for each other and
// weights come from several places in turn (prefetch.h).
template <typename Source>
struct FloatKernel512 {
  static constexpr WeightFormat kFormat = Source::kFormat;
  static constexpr ActivationForm kForm = Source::kForm;
  template <int kTokens>
  struct Panel {
    static constexpr PanelFn Run = FloatPanel<Source, kTokens, 1>;
  };
  static int SideTiles(int64_t tokens) { return tokens <= kFewTokens ? 4 : 1; }
  static PanelFn Choose(int64_t tokens, int num_tiles) {
    if (num_tiles == 1) {
      return ChoosePanel<Panel>(tokens);
    }
    return AsksAhead() ? Few<kAheadBytes>(tokens) : Few<0>(tokens);
  }

 private:
  template <int kBytesAhead>
  static PanelFn Few(int64_t tokens) {
    static constexpr PanelFn kFew[] = {FloatPanel<Source, 1, 4, kBytesAhead>,
                                       FloatPanel<Source, 2, 4, kBytesAhead>,
                                       FloatPanel<Source, 3, 4, kBytesAhead>,
                                       FloatPanel<Source, 4, 4, kBytesAhead>};
    return kFew[tokens - 1];
  }
};

}  // namespace
}  // namespace millrace::kernels
