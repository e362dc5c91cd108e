// FP8 weights by the paired dot instruction (matmul_avx512_bf16.cc checks it).
// Their bf16 are 0 or at least 2^-9, so that it meets no subnormal.

#include <cstring>

#include "kernels/matmul/avx512_fp8.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {
namespace {

// Two pairs of columns as bf16.
struct QuadBf16 {
  __m512bh pair[2];
};

inline __m512bh AsPairs(__m512i bits) {
  __m512bh pairs;
  std::memcpy(&pairs, &bits, sizeof(pairs));
  return pairs;
}

// The bytes of the bf16 of codes, for codes without their sign. From 8 on, the
// exponent grows by 120: high byte 60 + code / 16, low byte code * 16. Below,
// codes are subnormal, and a table of 16 says by how much that is wrong.
struct CodeBytes512 {
  __m512i high;
  __m512i low;
};
__attribute__((always_inline)) inline CodeBytes512 BytesOf(__m512i codes) {
  const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi8(0x7f));
  const __m512i small = _mm512_min_epu8(magnitude, _mm512_set1_epi8(8));
  // 2^-9 times 0 to 7: 0, 3b00, 3b80, 3bc0, 3c00, 3c20, 3c40, 3c60.
  const __m512i high_of_small = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 59, 59, 59, 60, 60, 60, 60, 60, 0, 0, 0, 0, 0, 0, 0));
  // Their low bytes, changed where code * 16 differs.
  const __m512i change_of_small = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 0x10, static_cast<char>(0xa0), static_cast<char>(0xf0),
                    0x40, 0x70, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m512i sixteenth =
      _mm512_and_si512(_mm512_srli_epi16(magnitude, 4), _mm512_set1_epi8(7));
  const __m512i high =
      _mm512_add_epi8(sixteenth, _mm512_shuffle_epi8(high_of_small, small));
  const __m512i sixteenfold =
      _mm512_and_si512(_mm512_slli_epi16(codes, 4), _mm512_set1_epi8(-16));
  const __m512i sign = _mm512_and_si512(codes, _mm512_set1_epi8(-128));
  return {_mm512_or_si512(high, sign),
          _mm512_xor_si512(sixteenfold,
                           _mm512_shuffle_epi8(change_of_small, small))};
}

struct PairedDotSource : Fp8FastSums512 {
  static QuadBf16 Load(const std::byte* from, float) {
    const CodeBytes512 bytes = BytesOf(_mm512_loadu_si512(from));
    return {{AsPairs(_mm512_unpacklo_epi8(bytes.low, bytes.high)),
             AsPairs(_mm512_unpackhi_epi8(bytes.low, bytes.high))}};
  }
  static void Add(__m512& sum, const QuadBf16& quad, int pair, const float* x,
                  int64_t) {
    const __m512i both = _mm512_castps_si512(_mm512_set1_ps(*x));
    sum = _mm512_dpbf16_ps(sum, quad.pair[pair], AsPairs(both));
  }
};

}  // namespace

void MatMulAvx512Fp8Pairs(const MatMulArgs& args, int64_t tile_begin,
                          int64_t tile_end) {
  MatMulTiles<Fp8Kernel512<PairedDotSource>>(args, tile_begin, tile_end);
}

}  // namespace millrace::kernels
