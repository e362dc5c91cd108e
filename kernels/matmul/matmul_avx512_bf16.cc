// BF16 weights by the paired dot instruction, and the check that it computes
// what two fused steps do: other makers may have built it differently.

#include <cstring>

#include "kernels/matmul/avx512_float.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {
namespace {

inline __m512bh AsPairs(__m512i bits) {
  __m512bh pairs;
  std::memcpy(&pairs, &bits, sizeof(pairs));
  return pairs;
}

struct PairedDotSource : FloatSource512 {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static constexpr ActivationForm kForm = ActivationForm::kBf16;
  static constexpr int kColumns = 2;
  static constexpr int64_t kStepBytes = 64;
  static __m512i Load(const std::byte* from) {
    return FlushTiny(_mm512_loadu_si512(from));
  }
  static void Add(__m512& sum, __m512i w, const float* x, int64_t) {
    const __m512i pair = _mm512_castps_si512(_mm512_set1_ps(*x));
    sum = _mm512_dpbf16_ps(sum, AsPairs(w), AsPairs(pair));
  }
};

// xorshift32: this file may not use the standard library's generators.
struct Random {
  uint32_t state;
  uint32_t Next() {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  }
  // bf16 of any sign with its exponent in one of three bands: near 1, where
  // sums cancel; anywhere above 2^-50; at the very ends, with 0 and infinity.
  uint32_t Bf16() {
    const uint32_t bits = Next();
    const uint32_t low = bits & 0x807f;
    switch (bits >> 28) {
      case 0:
        return bits & 0x8000;
      case 1:
        return low | 77 << 7;
      case 2:
        return low | 254 << 7;
      case 3:
        return (bits & 0x8000) | (bits >> 27 & 1 ? 0x7f80 : 0);
      case 4:
      case 5:
      case 6:
        return low | (77 + (bits >> 16) % 178) << 7;
      default:
        return low | (125 + (bits >> 16) % 5) << 7;
    }
  }
  __m512i Pairs() {
    alignas(64) uint32_t pairs[16];
    for (uint32_t& pair : pairs) {
      pair = Bf16() | Bf16() << 16;
    }
    return _mm512_load_si512(pairs);
  }
};

// Equal bits, or NaN in both.
bool AllEqual(__m512 a, __m512 b) {
  const __mmask16 same =
      _mm512_cmpeq_epi32_mask(_mm512_castps_si512(a), _mm512_castps_si512(b));
  const __mmask16 nan_a = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  const __mmask16 nan_b = _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q);
  return static_cast<__mmask16>(same | (nan_a & nan_b)) == 0xffff;
}

constexpr int kCheckedChains = 512;
constexpr int kChainSteps = 16;

}  // namespace

void MatMulAvx512Bf16Pairs(const MatMulArgs& args, int64_t tile_begin,
                           int64_t tile_end) {
  MatMulTiles<FloatKernel512<PairedDotSource>>(args, tile_begin, tile_end);
}

void MatMulAvx512FewBf16Pairs(const MatMulArgs& args, int64_t tile_begin,
                              int64_t tile_end) {
  constexpr int64_t kFew = 4;
  if (args.num_tokens <= kFew) {
    MatMulAvx512Bf16Pairs(args, tile_begin, tile_end);
  } else {
    kMatMulAvx512Bf16.fast(args, tile_begin, tile_end);
  }
}

bool PairedDotIsTwoFusedSteps() {
  Random random = {0x9e3779b9};
  for (int chain = 0; chain < kCheckedChains; ++chain) {
    __m512 paired = _mm512_setzero_ps();
    __m512 fused = _mm512_setzero_ps();
    for (int step = 0; step < kChainSteps; ++step) {
      const __m512i w = random.Pairs();
      const __m512i x = random.Pairs();
      paired = _mm512_dpbf16_ps(paired, AsPairs(w), AsPairs(x));
      fused = _mm512_fmadd_ps(OddOfPairs(w), OddOfPairs(x), fused);
      fused = _mm512_fmadd_ps(EvenOfPairs(w), EvenOfPairs(x), fused);
      if (!AllEqual(paired, fused)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace millrace::kernels
