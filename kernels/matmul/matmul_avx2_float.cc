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

// Columns ready to be multiplied, in the order of their sums.
struct WideColumns {
  const float* w;  // [columns][16]
  const float* x;  // [columns][tokens]
};

// Sources for several tokens: Expand() makes `columns` columns from `column` on
// ready, where they stand already or written to `w` and `x`. Columns come in
// steps of kWideColumns, the last one shorter, and padded to kPadding.
struct WideF32 {
  static constexpr int64_t kPadding = 1;
  static WideColumns Expand(const PanelArgs& args, int64_t column, int64_t,
                            float*, float*) {
    return {FloatsOf(args.tile + column * 64),
            FloatsOf(args.panel) + column * args.tokens};
  }
};

struct WideF16 {
  static constexpr int64_t kPadding = 1;
  static WideColumns Expand(const PanelArgs& args, int64_t column,
                            int64_t columns, float* w, float*) {
    const std::byte* from = args.tile + column * 32;
    for (int64_t i = 0; i < columns * 2; ++i) {
      _mm256_store_ps(w + 8 * i, _mm256_cvtph_ps(LoadXmm(from + 16 * i)));
    }
    return {w, FloatsOf(args.panel) + column * args.tokens};
  }
};

struct WideBf16Exact {
  static constexpr int64_t kPadding = 1;
  static WideColumns Expand(const PanelArgs& args, int64_t column,
                            int64_t columns, float* w, float*) {
    const std::byte* from = args.tile + column * 32;
    for (int64_t i = 0; i < columns; i += 2) {
      const Pairs256 pairs = Bf16ExactSource::Load(from + 32 * i);
      StoreColumn(pairs.even, w + kTileRows * i);
      StoreColumn(pairs.odd, w + kTileRows * (i + 1));
    }
    return {w, FloatsOf(args.panel) + column * args.tokens};
  }
};

// Pairs, odd column first; an odd number of columns is padded with zeros.
struct WideBf16Fast {
  static constexpr int64_t kPadding = 2;
  static WideColumns Expand(const PanelArgs& args, int64_t column,
                            int64_t columns, float* w, float* x) {
    const std::byte* from = args.tile + column * 32;
    for (int64_t i = 0; i < columns; i += 2) {
      const Pairs256 pairs = Bf16FastSource::Load(from + 32 * i);
      StoreColumn(pairs.odd, w + kTileRows * i);
      StoreColumn(pairs.even, w + kTileRows * (i + 1));
    }
    // Both activations of a pair lie in one word: tokens of neighbouring pairs
    // follow each other.
    const int64_t tokens = args.tokens;
    const float* pairs = FloatsOf(args.panel) + column / 2 * tokens;
    for (int64_t pair = 0; pair < columns / 2; ++pair) {
      SplitPairs(pairs + pair * tokens, tokens, x + 2 * pair * tokens);
    }
    return {w, x};
  }
};

template <typename Wide>
void WidePanel(const PanelArgs& args) {
  alignas(64) float w[kWideColumns * kTileRows];
  alignas(64) float x[kWideColumns * kPanelTokens];
  ZeroSums(args);
  const int64_t all =
      (args.cols + Wide::kPadding - 1) / Wide::kPadding * Wide::kPadding;
  for (int64_t column = 0; column < all; column += kWideColumns) {
    const int64_t left = all - column;
    const int64_t columns = left < kWideColumns ? left : kWideColumns;
    const WideColumns ready = Wide::Expand(args, column, columns, w, x);
    AddColumnsOfPanel(ready.w, ready.x, args.tokens, columns, args.sums);
  }
}

// One to three tokens are multiplied as the weights come from memory.
template <typename Source, typename Wide>
void FloatPanels(const PanelArgs& args) {
  switch (args.tokens) {
    case 1:
      return FloatPanel<Source, 1, 1>(args);
    case 2:
      return FloatPanel<Source, 2, 1>(args);
    case 3:
      return FloatPanel<Source, 3, 1>(args);
    default:
      return WidePanel<Wide>(args);
  }
}

template <typename Source, typename Wide>
struct FloatKernel256 {
  static constexpr WeightFormat kFormat = Source::kFormat;
  static constexpr ActivationForm kForm = Source::kForm;
  static int SideTiles(int64_t tokens) {
    return tokens == 1 ? 4 : tokens == 2 ? 2 : 1;
  }
  static PanelFn Choose(int64_t, int num_tiles) {
    return num_tiles == 4   ? FloatPanel<Source, 1, 4>
           : num_tiles == 2 ? FloatPanel<Source, 2, 2>
                            : FloatPanels<Source, Wide>;
  }
};

}  // namespace

const MatMulPair kMatMulAvx2F32 = {
    MatMulTiles<FloatKernel256<F32Source, WideF32>>,
    MatMulTiles<FloatKernel256<F32Source, WideF32>>};
const MatMulPair kMatMulAvx2F16 = {
    MatMulTiles<FloatKernel256<F16Source, WideF16>>,
    MatMulTiles<FloatKernel256<F16Source, WideF16>>};
const MatMulPair kMatMulAvx2Bf16 = {
    MatMulTiles<FloatKernel256<Bf16FastSource, WideBf16Fast>>,
    MatMulTiles<FloatKernel256<Bf16ExactSource, WideBf16Exact>>};

}  // namespace millrace::kernels
