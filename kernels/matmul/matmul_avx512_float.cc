#include "kernels/matmul/avx512_float.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {
namespace {

struct F32Source : FloatSource512 {
  static constexpr WeightFormat kFormat = WeightFormat::kF32;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static constexpr int kColumns = 1;
  static constexpr int64_t kStepBytes = 64;
  static __m512 Load(const std::byte* from) { return _mm512_loadu_ps(from); }
  static void Add(__m512& sum, __m512 w, const float* x, int64_t) {
    sum = _mm512_fmadd_ps(w, _mm512_set1_ps(*x), sum);
  }
};

struct F16Source : F32Source {
  static constexpr WeightFormat kFormat = WeightFormat::kF16;
  static constexpr int64_t kStepBytes = 32;
  static __m512 Load(const std::byte* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(
        static_cast<const __m256i*>(static_cast<const void*>(from))));
  }
};

struct Bf16ExactSource : FloatSource512 {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static constexpr int kColumns = 2;
  static constexpr int64_t kStepBytes = 64;
  static PairWeights512 Load(const std::byte* from) {
    const __m512i pairs = _mm512_loadu_si512(from);
    return {EvenOfPairs(pairs), OddOfPairs(pairs)};
  }
  static void Add(__m512& sum, const PairWeights512& w, const float* x,
                  int64_t stride) {
    sum = _mm512_fmadd_ps(w.even, _mm512_set1_ps(*x), sum);
    sum = _mm512_fmadd_ps(w.odd, _mm512_set1_ps(x[stride]), sum);
  }
  static void AddLast(__m512& sum, const PairWeights512& w, const float* x) {
    sum = _mm512_fmadd_ps(w.even, _mm512_set1_ps(*x), sum);
  }
};

struct Bf16FastSource : Bf16ExactSource {
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  static PairWeights512 Load(const std::byte* from) {
    const __m512i pairs = FlushTiny(_mm512_loadu_si512(from));
    return {EvenOfPairs(pairs), OddOfPairs(pairs)};
  }
  static void Add(__m512& sum, const PairWeights512& w, const float* x,
                  int64_t) {
    const __m512i pair = _mm512_castps_si512(_mm512_set1_ps(*x));
    sum = _mm512_fmadd_ps(w.odd, OddOfPairs(pair), sum);
    sum = _mm512_fmadd_ps(w.even, EvenOfPairs(pair), sum);
  }
};

}  // namespace

const MatMulPair kMatMulAvx512F32 = {MatMulTiles<FloatKernel512<F32Source>>,
                                     MatMulTiles<FloatKernel512<F32Source>>};
const MatMulPair kMatMulAvx512F16 = {MatMulTiles<FloatKernel512<F16Source>>,
                                     MatMulTiles<FloatKernel512<F16Source>>};
const MatMulPair kMatMulAvx512Bf16 = {
    MatMulTiles<FloatKernel512<Bf16FastSource>>,
    MatMulTiles<FloatKernel512<Bf16ExactSource>>};

}  // namespace millrace::kernels
