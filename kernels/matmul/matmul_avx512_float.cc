#include <utility>

#include "kernels/matmul/avx512_expanded_walk.h"
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

// BF16 weights as f32, decoded once for many tokens: two fused steps a pair
// without the paired dot instruction.
class Bf16Decoder {
 public:
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  static constexpr int64_t kPairs = 128;
  static constexpr int64_t kColumns = 2 * kPairs;
  static constexpr int64_t kBytes = kColumns * kTileRows * 4;

  // Odd columns of the pairs [pair][16 rows], then even ones.
  static void Expand(const std::byte* tile, int64_t, int64_t begin, int64_t end,
                     std::byte* out) {
    const int64_t first = begin / 2;
    for (int64_t i = 0; i < (end + 1) / 2 - first; ++i) {
      const __m512i pairs =
          FlushTiny(_mm512_load_si512(tile + (first + i) * 64));
      _mm512_store_ps(out + i * 64, OddOfPairs(pairs));
      _mm512_store_ps(out + (kPairs + i) * 64, EvenOfPairs(pairs));
    }
  }
  static int64_t Offset(int64_t column, int64_t tokens) {
    return column / 2 * tokens * 4;
  }
  static void Add(const ExpandedArgs& args) {
    ChooseAdd(args.tokens,
              std::make_integer_sequence<int, kPanelTokens>())(args);
  }
  static void Finish() {}

 private:
  using AddFn = void (*)(const ExpandedArgs& args);

  template <int... kTokens>
  static AddFn ChooseAdd(int64_t tokens,
                         std::integer_sequence<int, kTokens...>) {
    static constexpr AddFn kAdd[] = {AddTokens<kTokens + 1>...};
    return kAdd[tokens - 1];
  }

  // Both columns of pairs as f32, [pair][token] each; 16 floats more, since
  // whole vectors are written.
  struct Activations {
    alignas(64) float odd[kPairs * kPanelTokens + 16];
    alignas(64) float even[kPairs * kPanelTokens + 16];
  };

  static void Split(const std::byte* pairs, int64_t num, Activations& x) {
    for (int64_t i = 0; i < num; i += 16) {
      const int64_t left = num - i;
      const __mmask16 some =
          static_cast<__mmask16>(left < 16 ? (1 << left) - 1 : 0xffff);
      const __m512i both =
          _mm512_castps_si512(_mm512_maskz_loadu_ps(some, pairs + 4 * i));
      _mm512_store_ps(x.odd + i, OddOfPairs(both));
      _mm512_store_ps(x.even + i, EvenOfPairs(both));
    }
  }

  template <int kTokens>
  static void AddTokens(const ExpandedArgs& args) {
    const int64_t pairs = (args.columns + 1) / 2;
    Activations x;
    Split(args.activations, pairs * kTokens, x);
    __m512 acc[kTokens];
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      acc[t] = _mm512_load_ps(args.sums + t * kTileRows);
    }
    for (int64_t i = 0; i < pairs; ++i) {
      const __m512 odd = _mm512_load_ps(args.weights + i * 64);
#pragma GCC unroll 16
      for (int t = 0; t < kTokens; ++t) {
        acc[t] = _mm512_fmadd_ps(odd, _mm512_set1_ps(x.odd[i * kTokens + t]),
                                 acc[t]);
      }
      const __m512 even = _mm512_load_ps(args.weights + (kPairs + i) * 64);
#pragma GCC unroll 16
      for (int t = 0; t < kTokens; ++t) {
        acc[t] = _mm512_fmadd_ps(even, _mm512_set1_ps(x.even[i * kTokens + t]),
                                 acc[t]);
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      _mm512_store_ps(args.sums + t * kTileRows, acc[t]);
    }
  }
};

// With fewer tokens decoding for each of them costs less.
constexpr int64_t kFewestExpanded = 5;

void MatMulBf16(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens < kFewestExpanded) {
    MatMulTiles<FloatKernel512<Bf16FastSource>>(args, tile_begin, tile_end);
    return;
  }
  ExpandedWalk<Bf16Decoder>(args).Run(tile_begin, tile_end);
}

}  // namespace

const MatMulPair kMatMulAvx512F32 = {MatMulTiles<FloatKernel512<F32Source>>,
                                     MatMulTiles<FloatKernel512<F32Source>>};
const MatMulPair kMatMulAvx512F16 = {MatMulTiles<FloatKernel512<F16Source>>,
                                     MatMulTiles<FloatKernel512<F16Source>>};
const MatMulPair kMatMulAvx512Bf16 = {
    MatMulBf16, MatMulTiles<FloatKernel512<Bf16ExactSource>>};

}  // namespace millrace::kernels
