#include "kernels/matmul/avx512_float.h"
#include "kernels/matmul/avx512_wide.h"
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

// Two fused steps a pair without the paired dot instruction: the odd column
// before the even one.
struct Bf16FastDecoder : WideDecoder {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static constexpr ActivationForm kForm = ActivationForm::kBf16;

  static void Expand(const std::byte* tile, int64_t, int64_t begin, int64_t end,
                     std::byte* out) {
    const std::byte* from = tile + begin / 2 * 64;
    for (int64_t k = begin; k < end; k += 2, from += 64, out += 128) {
      const PairWeights512 w = Bf16FastSource::Load(from);
      _mm512_store_ps(out, w.odd);
      _mm512_store_ps(out + 64, w.even);
    }
  }
  static int64_t Offset(int64_t column, int64_t tokens) {
    return column / 2 * tokens * 4;
  }
  static int64_t Add(const ExpandedArgs& args) {
    alignas(64) float x[kColumns * kPanelTokens];
    const int64_t pairs = (args.columns + 1) / 2;
    const __mmask16 some = static_cast<__mmask16>((1 << args.tokens) - 1);
    for (int64_t i = 0; i < pairs; ++i) {
      const __m512i both = _mm512_castps_si512(
          _mm512_maskz_loadu_ps(some, args.activations + i * args.tokens * 4));
      _mm512_store_ps(x + 2 * i * kPanelTokens, OddOfPairs(both));
      _mm512_store_ps(x + (2 * i + 1) * kPanelTokens, EvenOfPairs(both));
    }
    return AddWidePanel(args, x, kPanelTokens, 2 * pairs);
  }
};

void MatMulBf16(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens < kFewestExpanded) {
    MatMulTiles<FloatKernel512<Bf16FastSource>>(args, tile_begin, tile_end);
  } else {
    ExpandedWalk<Bf16FastDecoder>(args).Run(tile_begin, tile_end);
  }
}

}  // namespace

const MatMulPair kMatMulAvx512F32 = {MatMulTiles<FloatKernel512<F32Source>>,
                                     MatMulTiles<FloatKernel512<F32Source>>};
const MatMulPair kMatMulAvx512F16 = {MatMulTiles<FloatKernel512<F16Source>>,
                                     MatMulTiles<FloatKernel512<F16Source>>};
const MatMulPair kMatMulAvx512Bf16 = {
    MatMulBf16, MatMulTiles<FloatKernel512<Bf16ExactSource>>};

}  // namespace millrace::kernels
