#include <immintrin.h>

#include "kernels/matmul/matmul_avx512.h"
#include "kernels/matmul/pack_words.h"

namespace millrace::kernels {
namespace {

// Interleaves 32-bit words, then pairs of them, then quarters of registers.
inline void Transpose16(__m512i* v) {
  __m512i a[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    a[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
    a[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
  }
  // b[4 i + j]: words j, j + 4, j + 8, j + 12 of the rows 4 i to 4 i + 3.
  __m512i b[16];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i* from = a + 4 * i;
    b[4 * i] = _mm512_unpacklo_epi64(from[0], from[2]);
    b[4 * i + 1] = _mm512_unpackhi_epi64(from[0], from[2]);
    b[4 * i + 2] = _mm512_unpacklo_epi64(from[1], from[3]);
    b[4 * i + 3] = _mm512_unpackhi_epi64(from[1], from[3]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i even0 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0x88);
    const __m512i odd0 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0xdd);
    const __m512i even1 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0x88);
    const __m512i odd1 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0xdd);
    v[j] = _mm512_shuffle_i32x4(even0, even1, 0x88);
    v[8 + j] = _mm512_shuffle_i32x4(even0, even1, 0xdd);
    v[4 + j] = _mm512_shuffle_i32x4(odd0, odd1, 0x88);
    v[12 + j] = _mm512_shuffle_i32x4(odd0, odd1, 0xdd);
  }
}

inline __mmask16 First(int64_t num) {
  return static_cast<__mmask16>(num < 16 ? (1 << num) - 1 : 0xffff);
}

struct Words512 {
  using Vector = __m512i;
  static constexpr int64_t kLanes = 16;
  static __m512i Zero() { return _mm512_setzero_si512(); }
  static void Transpose(__m512i* vectors) { Transpose16(vectors); }
  static void Store(std::byte* to, __m512i words, int64_t num) {
    _mm512_mask_storeu_ps(to, First(num), _mm512_castsi512_ps(words));
  }
};

struct F32Words512 : Words512 {
  static constexpr int64_t kColumns = 1;
  static __m512i Load(const float* row, int64_t left) {
    return _mm512_castps_si512(_mm512_maskz_loadu_ps(First(left), row));
  }
};

// As FloatToBf16 and FlushTinyBf16, in the upper half of a word.
inline __m512i RoundedBf16(__m512i bits) {
  const __m512i magnitude =
      _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  const __m512i odd =
      _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan =
      _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
  const __m512i all =
      _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x40 << 16));
  const __mmask16 kept = _mm512_cmpge_epi32_mask(
      _mm512_and_si512(all, _mm512_set1_epi32(0x7fffffff)),
      _mm512_set1_epi32(kWordFlushBelow));
  return _mm512_maskz_and_epi32(kept, all, _mm512_set1_epi32(-65536));
}

struct Bf16Words512 : Words512 {
  static constexpr int64_t kColumns = 2;
  static __m512i Load(const float* row, int64_t left) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
                                           20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i first = RoundedBf16(
        _mm512_castps_si512(_mm512_maskz_loadu_ps(First(left), row)));
    const __m512i second =
        left <= 16 ? Zero()
                   : RoundedBf16(_mm512_castps_si512(
                         _mm512_maskz_loadu_ps(First(left - 16), row + 16)));
    return _mm512_or_si512(
        _mm512_srli_epi32(_mm512_permutex2var_epi32(first, even, second), 16),
        _mm512_permutex2var_epi32(first, odd, second));
  }
};

}  // namespace

void PackF32Avx512(const PackActivationsArgs& args, int64_t panel_begin,
                   int64_t panel_end) {
  PackWords<F32Words512>(args, panel_begin, panel_end);
}

void PackBf16Avx512(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end) {
  PackWords<Bf16Words512>(args, panel_begin, panel_end);
}

}  // namespace millrace::kernels
