#include "kernels/matmul/avx512_fp8.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {
namespace {

// Numbers of two pairs of columns.
struct Quad512 {
  PairWeights512 pair[2];
};

// bf16 whose exponent lacks 120 as floats: the product moves the bias and
// normalises subnormals, exactly.
__attribute__((always_inline)) inline PairWeights512 Unbiased(__m512i words) {
  const __m512 bias = _mm512_set1_ps(0x1p120f);
  const __m512i bf16 = _mm512_and_si512(
      _mm512_srai_epi16(words, 4),
      _mm512_set1_epi16(static_cast<int16_t>(uint16_t{0x87f0})));
  return {_mm512_mul_ps(EvenOfPairs(bf16), bias),
          _mm512_mul_ps(OddOfPairs(bf16), bias)};
}

struct FastSource : Fp8FastSums512 {
  static Quad512 Load(const std::byte* from, float) {
    const __m512i codes = _mm512_loadu_si512(from);
    const __m512i zero = _mm512_setzero_si512();
    return {{Unbiased(_mm512_unpacklo_epi8(zero, codes)),
             Unbiased(_mm512_unpackhi_epi8(zero, codes))}};
  }
  static void Add(__m512& sum, const Quad512& quad, int pair, const float* x,
                  int64_t) {
    const __m512i both = _mm512_castps_si512(_mm512_set1_ps(*x));
    sum = _mm512_fmadd_ps(quad.pair[pair].odd, OddOfPairs(both), sum);
    sum = _mm512_fmadd_ps(quad.pair[pair].even, EvenOfPairs(both), sum);
  }
};

struct ExactSource {
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  using Sum = __m512;
  static __m512 Begin(const float* total) { return _mm512_load_ps(total); }
  static void End(__m512 sum, float, float* total) {
    _mm512_store_ps(total, sum);
  }
  static Quad512 Load(const std::byte* from, float scale) {
    Quad512 quad = FastSource::Load(from, scale);
    const __m512 s = _mm512_set1_ps(scale);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      quad.pair[i].even = _mm512_mul_ps(quad.pair[i].even, s);
      quad.pair[i].odd = _mm512_mul_ps(quad.pair[i].odd, s);
    }
    return quad;
  }
  static void Add(__m512& sum, const Quad512& quad, int pair, const float* x,
                  int64_t stride) {
    sum = _mm512_fmadd_ps(quad.pair[pair].even, _mm512_set1_ps(*x), sum);
    sum = _mm512_fmadd_ps(quad.pair[pair].odd, _mm512_set1_ps(x[stride]), sum);
  }
  static void AddEven(__m512& sum, const Quad512& quad, int pair,
                      const float* x) {
    sum = _mm512_fmadd_ps(quad.pair[pair].even, _mm512_set1_ps(*x), sum);
  }
};

}  // namespace

const MatMulPair kMatMulAvx512Fp8 = {MatMulTiles<Fp8Kernel512<FastSource>>,
                                     MatMulTiles<Fp8Kernel512<ExactSource>>};

}  // namespace millrace::kernels
