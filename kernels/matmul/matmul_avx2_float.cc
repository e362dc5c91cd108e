#include <immintrin.h>

#include "kernels/matmul/float_kernel.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {
namespace {

// Sixteen lanes.
struct Two256 {
  __m256 low;
  __m256 high;
};

struct Pairs256 {
  Two256 even;
  Two256 odd;
};

struct FloatSource256 {
  using Sum = Two256;
  static Two256 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static void Keep(const Two256& sum, float* to) {
    _mm256_store_ps(to, sum.low);
    _mm256_store_ps(to + 8, sum.high);
  }
};

__attribute__((always_inline)) inline void FusedStep(Two256& sum,
                                                     const Two256& w,
                                                     __m256 x) {
  sum.low = _mm256_fmadd_ps(w.low, x, sum.low);
  sum.high = _mm256_fmadd_ps(w.high, x, sum.high);
}

inline __m256i LoadYmm(const std::byte* from) {
  return _mm256_loadu_si256(
      static_cast<const __m256i*>(static_cast<const void*>(from)));
}
inline __m256 EvenOfPairs(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
inline __m256 OddOfPairs(__m256i pairs) {
  return _mm256_castsi256_ps(
      _mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
}

// bf16 below 2^-50 becomes +0 (kBf16FlushBelow).
inline __m256i FlushTiny(__m256i bf16) {
  const __m256i magnitude = _mm256_and_si256(bf16, _mm256_set1_epi16(0x7fff));
  return _mm256_and_si256(
      bf16, _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x267f)));
}

struct F32Source : FloatSource256 {
  static constexpr WeightFormat kFormat = WeightFormat::kF32;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static constexpr int kColumns = 1;
  static constexpr int64_t kStepBytes = 64;
  static Two256 Load(const std::byte* from) {
    const float* w = static_cast<const float*>(static_cast<const void*>(from));
    return {_mm256_loadu_ps(w), _mm256_loadu_ps(w + 8)};
  }
  static void Add(Two256& sum, const Two256& w, const float* x, int64_t) {
    FusedStep(sum, w, _mm256_set1_ps(*x));
  }
};

struct F16Source : F32Source {
  static constexpr WeightFormat kFormat = WeightFormat::kF16;
  static constexpr int64_t kStepBytes = 32;
  static Two256 Load(const std::byte* from) {
    const __m256i halves = LoadYmm(from);
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
  }
};

struct Bf16ExactSource : FloatSource256 {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static constexpr int kColumns = 2;
  static constexpr int64_t kStepBytes = 64;
  static Pairs256 Load(const std::byte* from) {
    const __m256i low = LoadYmm(from);
    const __m256i high = LoadYmm(from + 32);
    return {{EvenOfPairs(low), EvenOfPairs(high)},
            {OddOfPairs(low), OddOfPairs(high)}};
  }
  static void Add(Two256& sum, const Pairs256& w, const float* x,
                  int64_t stride) {
    FusedStep(sum, w.even, _mm256_set1_ps(*x));
    FusedStep(sum, w.odd, _mm256_set1_ps(x[stride]));
  }
  static void AddLast(Two256& sum, const Pairs256& w, const float* x) {
    FusedStep(sum, w.even, _mm256_set1_ps(*x));
  }
};

struct Bf16FastSource : Bf16ExactSource {
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  static Pairs256 Load(const std::byte* from) {
    const __m256i low = FlushTiny(LoadYmm(from));
    const __m256i high = FlushTiny(LoadYmm(from + 32));
    return {{EvenOfPairs(low), EvenOfPairs(high)},
            {OddOfPairs(low), OddOfPairs(high)}};
  }
  static void Add(Two256& sum, const Pairs256& w, const float* x, int64_t) {
    const __m256i pair = _mm256_castps_si256(_mm256_set1_ps(*x));
    FusedStep(sum, w.odd, OddOfPairs(pair));
    FusedStep(sum, w.even, EvenOfPairs(pair));
  }
};

// Four tokens are eight accumulators; more would leave none for weights.
template <typename Source>
void FloatSlices(const PanelArgs& args) {
  for (int64_t begin = 0; begin < args.tokens; begin += 4) {
    PanelArgs slice = args;
    slice.panel += begin * static_cast<int64_t>(sizeof(float));
    slice.sums += begin * kTileRows;
    switch (args.tokens - begin) {
      case 1:
        FloatPanel<Source, 1, 1>(slice);
        break;
      case 2:
        FloatPanel<Source, 2, 1>(slice);
        break;
      case 3:
        FloatPanel<Source, 3, 1>(slice);
        break;
      default:
        FloatPanel<Source, 4, 1>(slice);
        break;
    }
  }
}

template <typename Source>
struct FloatKernel256 {
  static constexpr WeightFormat kFormat = Source::kFormat;
  static constexpr ActivationForm kForm = Source::kForm;
  static int SideTiles(int64_t tokens) {
    return tokens == 1 ? 4 : tokens == 2 ? 2 : 1;
  }
  static PanelFn Choose(int64_t, int num_tiles) {
    return num_tiles == 4   ? FloatPanel<Source, 1, 4>
           : num_tiles == 2 ? FloatPanel<Source, 2, 2>
                            : FloatSlices<Source>;
  }
};

}  // namespace

const MatMulPair kMatMulAvx2F32 = {MatMulTiles<FloatKernel256<F32Source>>,
                                   MatMulTiles<FloatKernel256<F32Source>>};
const MatMulPair kMatMulAvx2F16 = {MatMulTiles<FloatKernel256<F16Source>>,
                                   MatMulTiles<FloatKernel256<F16Source>>};
const MatMulPair kMatMulAvx2Bf16 = {
    MatMulTiles<FloatKernel256<Bf16FastSource>>,
    MatMulTiles<FloatKernel256<Bf16ExactSource>>};

}  // namespace millrace::kernels
