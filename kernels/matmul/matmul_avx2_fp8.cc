#include <immintrin.h>

#include "kernels/matmul/avx2_float.h"
#include "kernels/matmul/avx2_wide.h"
#include "kernels/matmul/fp8_kernel.h"
#include "kernels/matmul/matmul_avx2.h"

namespace millrace::kernels {
namespace {

// Two pairs of columns.
struct Quad256 {
  Pairs256 pair[2];
};

inline Two256 LoadColumn(const float* from) {
  return {_mm256_load_ps(from), _mm256_load_ps(from + 8)};
}

// Codes in the high bytes of words become numbers. Sign and magnitude go where
// a bf16 has them; the product moves the bias of the exponent and normalises
// subnormals, exactly.
__attribute__((always_inline)) inline void DecodeWords(__m256i words,
                                                       __m256& even,
                                                       __m256& odd) {
  const __m256 bias = _mm256_set1_ps(0x1p120f);
  const __m256i bf16 = _mm256_and_si256(
      _mm256_srai_epi16(words, 4),
      _mm256_set1_epi16(static_cast<int16_t>(uint16_t{0x87f0})));
  even = _mm256_mul_ps(EvenOfPairs(bf16), bias);
  odd = _mm256_mul_ps(OddOfPairs(bf16), bias);
}

__attribute__((always_inline)) inline Quad256 DecodeQuad(
    const std::byte* from) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low = LoadYmm(from);
  const __m256i high = LoadYmm(from + 32);
  Quad256 quad;
  Pairs256& first = quad.pair[0];
  Pairs256& second = quad.pair[1];
  DecodeWords(_mm256_unpacklo_epi8(zero, low), first.even.low, first.odd.low);
  DecodeWords(_mm256_unpackhi_epi8(zero, low), second.even.low, second.odd.low);
  DecodeWords(_mm256_unpacklo_epi8(zero, high), first.even.high,
              first.odd.high);
  DecodeWords(_mm256_unpackhi_epi8(zero, high), second.even.high,
              second.odd.high);
  return quad;
}

// total = fma(sum, scale, total), where the totals lie in memory: once a block.
inline void FoldBlock(const Two256& sum, float scale, float* total) {
  Two256 folded = LoadColumn(total);
  FusedStep(folded, sum, _mm256_set1_ps(scale));
  StoreColumn(folded, total);
}

struct FastSource {
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  using Sum = Two256;
  static Two256 Begin(const float*) {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  static void End(const Two256& sum, float scale, float* total) {
    FoldBlock(sum, scale, total);
  }
  static Quad256 Load(const std::byte* from, float) { return DecodeQuad(from); }
  static void Add(Two256& sum, const Quad256& quad, int pair, const float* x,
                  int64_t) {
    const __m256i both = _mm256_castps_si256(_mm256_set1_ps(*x));
    FusedStep(sum, quad.pair[pair].odd, OddOfPairs(both));
    FusedStep(sum, quad.pair[pair].even, EvenOfPairs(both));
  }
  static void AddEven(Two256&, const Quad256&, int, const float*) {}
};

inline Two256 Scaled(const Two256& w, __m256 scale) {
  return {_mm256_mul_ps(w.low, scale), _mm256_mul_ps(w.high, scale)};
}

// Columns [begin, begin + cols) of a block, times their scale.
inline void ExpandExact(const std::byte* codes, int64_t cols, float scale,
                        float* w) {
  const __m256 s = _mm256_set1_ps(scale);
  for (int64_t k = 0; k < cols; k += 4) {
    const Quad256 quad = DecodeQuad(codes + k * kTileRows);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      StoreColumn(Scaled(quad.pair[i].even, s), w);
      StoreColumn(Scaled(quad.pair[i].odd, s), w + kTileRows);
      w += 2 * kTileRows;
    }
  }
}

// The same as numbers, the odd column of a pair in front of the even one.
inline void ExpandFast(const std::byte* codes, int64_t cols, float* w) {
  for (int64_t k = 0; k < cols; k += 4) {
    const Quad256 quad = DecodeQuad(codes + k * kTileRows);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      StoreColumn(quad.pair[i].odd, w);
      StoreColumn(quad.pair[i].even, w + kTileRows);
      w += 2 * kTileRows;
    }
  }
}

struct ExactDecoder : WideF32Decoder {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8;
  static_assert(kFp8Block % kColumns == 0);
  static void Expand(const std::byte* tile, int64_t cols, int64_t begin,
                     int64_t end, std::byte* out) {
    ExpandExact(tile + Fp8CodesBegin(cols) + begin * kTileRows, end - begin,
                Fp8ScaleAt(tile, begin), FloatsAt(out));
  }
};

// A block at a time, its scale behind its columns.
struct FastDecoder : WidePairsDecoder<2, kFp8Block> {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8;
  static constexpr int64_t kScaleAt = Base::kBytes;
  static constexpr int64_t kBytes = kScaleAt + 64;

  static void Expand(const std::byte* tile, int64_t cols, int64_t begin,
                     int64_t end, std::byte* out) {
    ExpandFast(tile + Fp8CodesBegin(cols) + begin * kTileRows, end - begin,
               FloatsAt(out));
    *FloatsAt(out + kScaleAt) = Fp8ScaleAt(tile, begin);
  }
  static int64_t Add(const ExpandedArgs& args) {
    const SplitPanel panel(args);
    const int64_t num_sums = args.tokens * kTileRows;
    for (int64_t tile = 0; tile < args.num_tiles; ++tile) {
      alignas(64) float of_block[kPanelTokens * kTileRows];
      for (int64_t at = 0; at < num_sums; at += kTileRows) {
        Rows::Clear(of_block + at);
      }
      const std::byte* const weights = args.weights + tile * kBytes;
      panel.AddTile(weights, Base::AheadOfTile(args, tile), of_block);
      const float scale = *FloatsOf(weights + kScaleAt);
      float* const sums = args.sums + tile * kPanelTokens * kTileRows;
      for (int64_t at = 0; at < num_sums; at += kTileRows) {
        FoldBlock(LoadColumn(of_block + at), scale, sums + at);
      }
    }
    return args.ahead.bytes;
  }
};

// One to three tokens are multiplied as the weights come from memory.
struct FewTokens {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8;
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  static int SideTiles(int64_t tokens) {
    return tokens == 1 ? 4 : tokens == 2 ? 2 : 1;
  }
  static PanelFn Choose(int64_t tokens, int num_tiles) {
    if (num_tiles > 1) {
      return tokens == 1 ? Fp8Panel<FastSource, 1, 4>
                         : Fp8Panel<FastSource, 2, 2>;
    }
    return tokens == 1   ? Fp8Panel<FastSource, 1, 1>
           : tokens == 2 ? Fp8Panel<FastSource, 2, 1>
                         : Fp8Panel<FastSource, 3, 1>;
  }
};

void MatMulFast(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens < kFewestExpanded) {
    MatMulTiles<FewTokens>(args, tile_begin, tile_end);
  } else {
    ExpandedWalk<FastDecoder>(args).Run(tile_begin, tile_end);
  }
}

void MatMulExact(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  ExpandedWalk<ExactDecoder>(args).Run(tile_begin, tile_end);
}

}  // namespace

const MatMulPair kMatMulAvx2Fp8 = {MatMulFast, MatMulExact};

}  // namespace millrace::kernels
