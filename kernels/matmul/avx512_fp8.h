#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx512_float.h"
#include "kernels/matmul/fp8_kernel.h"
#include "kernels/matmul/panel_choice.h"

namespace millrace::kernels {
namespace {

// A Source of fast products without its weights.
struct Fp8FastSums512 {
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  using Sum = __m512;
  static __m512 Begin(const float*) { return _mm512_setzero_ps(); }
  static void End(__m512 sum, float scale, float* total) {
    _mm512_store_ps(total, _mm512_fmadd_ps(sum, _mm512_set1_ps(scale),
                                           _mm512_load_ps(total)));
  }
  template <typename Quad>
  static void AddEven(__m512&, const Quad&, int, const float*) {}
};

// Few tokens: tiles side by side, so that steps do not wait for each other.
template <typename Source>
struct Fp8Kernel512 {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8;
  static constexpr ActivationForm kForm = Source::kForm;
  template <int kTokens>
  struct Panel {
    static constexpr PanelFn Run = Fp8Panel<Source, kTokens, 1>;
  };
  static int SideTiles(int64_t tokens) {
    return tokens == 1 ? 4 : tokens == 2 ? 2 : 1;
  }
  static PanelFn Choose(int64_t tokens, int num_tiles) {
    if (num_tiles > 1) {
      return tokens == 1 ? Fp8Panel<Source, 1, 4> : Fp8Panel<Source, 2, 2>;
    }
    return ChoosePanel<Panel>(tokens);
  }
};

}  // namespace
}  // namespace millrace::kernels
