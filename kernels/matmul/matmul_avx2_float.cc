#include <immintrin.h>

#include "kernels/matmul/avx2_float.h"
#include "kernels/matmul/avx2_wide.h"
#include "kernels/matmul/float_kernel.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {
namespace {

struct FloatSource256 {
  using Sum = Two256;
  static Two256 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static void Keep(const Two256& sum, float* to) {
    _mm256_store_ps(to, sum.low);
    _mm256_store_ps(to + 8, sum.high);
  }
};

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

struct F16Decoder : WideF32Decoder {
  static constexpr WeightFormat kFormat = WeightFormat::kF16;
  static void Expand(const std::byte* tile, int64_t, int64_t begin, int64_t end,
                     std::byte* out) {
    float* w = FloatsAt(out);
    for (int64_t k = begin; k < end; ++k, w += kTileRows) {
      StoreColumn(F16Source::Load(tile + 32 * k), w);
    }
  }
};

// Pairs of columns from `begin` on, each as kFirst and then the other one.
template <typename Source, Two256 Pairs256::*kFirst, Two256 Pairs256::*kSecond>
void ExpandPairs(const std::byte* tile, int64_t begin, int64_t end,
                 std::byte* out) {
  float* w = FloatsAt(out);
  for (int64_t k = begin; k < end; k += 2, w += 2 * kTileRows) {
    const Pairs256 pairs = Source::Load(tile + 32 * k);
    StoreColumn(pairs.*kFirst, w);
    StoreColumn(pairs.*kSecond, w + kTileRows);
  }
}

struct Bf16ExactDecoder : WideF32Decoder {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static void Expand(const std::byte* tile, int64_t, int64_t begin, int64_t end,
                     std::byte* out) {
    ExpandPairs<Bf16ExactSource, &Pairs256::even, &Pairs256::odd>(tile, begin,
                                                                  end, out);
  }
};

struct Bf16FastDecoder : WidePairsDecoder<> {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static void Expand(const std::byte* tile, int64_t, int64_t begin, int64_t end,
                     std::byte* out) {
    ExpandPairs<Bf16FastSource, &Pairs256::odd, &Pairs256::even>(tile, begin,
                                                                 end, out);
  }
};

// Weights that are floats already are multiplied where they are, a share of the
// first-level cache at a time.
void F32Panel(const PanelArgs& args) {
  constexpr int64_t kColumns = 128;
  for (int64_t t = 0; t < args.tokens; ++t) {
    Rows256::Clear(args.sums + t * kTileRows);
  }
  for (int64_t column = 0; column < args.cols; column += kColumns) {
    const int64_t left = args.cols - column;
    AddWideTile({.w = FloatsOf(args.tile) + column * kTileRows,
                 .x = FloatsOf(args.panel) + column * args.tokens,
                 .x_stride = args.tokens,
                 .columns = left < kColumns ? left : kColumns,
                 .sums = args.sums,
                 .asked = {}},
                args.tokens);
  }
}

// One to three tokens are multiplied as the weights come from memory.
template <typename Source, PanelFn kMany>
struct FloatKernel256 {
  static constexpr WeightFormat kFormat = Source::kFormat;
  static constexpr ActivationForm kForm = Source::kForm;
  static int SideTiles(int64_t tokens) {
    return tokens == 1 ? 4 : tokens == 2 ? 2 : 1;
  }
  static PanelFn Choose(int64_t tokens, int num_tiles) {
    return num_tiles == 4   ? FloatPanel<Source, 1, 4>
           : num_tiles == 2 ? FloatPanel<Source, 2, 2>
           : tokens == 1    ? FloatPanel<Source, 1, 1>
           : tokens == 2    ? FloatPanel<Source, 2, 1>
           : tokens == 3    ? FloatPanel<Source, 3, 1>
                            : kMany;
  }
};

template <typename Source, typename Decoder>
void MatMulFloat(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens < kFewestExpanded) {
    MatMulTiles<FloatKernel256<Source, nullptr>>(args, tile_begin, tile_end);
  } else {
    ExpandedWalk<Decoder>(args).Run(tile_begin, tile_end);
  }
}

}  // namespace

const MatMulPair kMatMulAvx2F32 = {
    MatMulTiles<FloatKernel256<F32Source, F32Panel>>,
    MatMulTiles<FloatKernel256<F32Source, F32Panel>>};
const MatMulPair kMatMulAvx2F16 = {MatMulFloat<F16Source, F16Decoder>,
                                   MatMulFloat<F16Source, F16Decoder>};
const MatMulPair kMatMulAvx2Bf16 = {
    MatMulFloat<Bf16FastSource, Bf16FastDecoder>,
    MatMulFloat<Bf16ExactSource, Bf16ExactDecoder>};

}  // namespace millrace::kernels
