#include <immintrin.h>

#include "kernels/matmul/matmul_avx2.h"
#include "kernels/matmul/pack_words.h"

namespace millrace::kernels {
namespace {

// Interleaves 32-bit words, then pairs of them, then halves of registers.
inline void Transpose8(__m256i* v) {
  __m256i a[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
  }
  // b[4 i + j]: words j and j + 4 of the rows 4 i to 4 i + 3.
  __m256i b[8];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m256i* from = a + 4 * i;
    b[4 * i] = _mm256_unpacklo_epi64(from[0], from[2]);
    b[4 * i + 1] = _mm256_unpackhi_epi64(from[0], from[2]);
    b[4 * i + 2] = _mm256_unpacklo_epi64(from[1], from[3]);
    b[4 * i + 3] = _mm256_unpackhi_epi64(from[1], from[3]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    v[j] = _mm256_permute2x128_si256(b[j], b[4 + j], 0x20);
    v[4 + j] = _mm256_permute2x128_si256(b[j], b[4 + j], 0x31);
  }
}

inline __m256i First(int64_t num) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(num)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline __m256i LoadBits(const float* row, int64_t left) {
  if (left >= 8) {
    return _mm256_loadu_si256(
        static_cast<const __m256i*>(static_cast<const void*>(row)));
  }
  return _mm256_castps_si256(_mm256_maskload_ps(row, First(left)));
}

struct Words256 {
  using Vector = __m256i;
  static constexpr int64_t kLanes = 8;
  static __m256i Zero() { return _mm256_setzero_si256(); }
  static void Transpose(__m256i* vectors) { Transpose8(vectors); }
  static void Store(std::byte* to, __m256i words, int64_t num) {
    void* const at = to;
    if (num == kLanes) {
      _mm256_storeu_si256(static_cast<__m256i*>(at), words);
    } else {
      _mm256_maskstore_epi32(static_cast<int*>(at), First(num), words);
    }
  }
};

struct F32Words256 : Words256 {
  static constexpr int64_t kColumns = 1;
  static __m256i Load(const float* row, int64_t left) {
    return LoadBits(row, left);
  }
};

// As FloatToBf16 and FlushTinyBf16, in the upper half of a word.
inline __m256i RoundedBf16(__m256i bits) {
  const __m256i magnitude =
      _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd =
      _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan =
      _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  const __m256i all = _mm256_blendv_epi8(
      rounded, _mm256_or_si256(bits, _mm256_set1_epi32(0x40 << 16)), nan);
  const __m256i kept =
      _mm256_cmpgt_epi32(_mm256_and_si256(all, _mm256_set1_epi32(0x7fffffff)),
                         _mm256_set1_epi32(kWordFlushBelow - 1));
  return _mm256_and_si256(_mm256_and_si256(all, kept),
                          _mm256_set1_epi32(-65536));
}

struct Bf16Words256 : Words256 {
  static constexpr int64_t kColumns = 2;
  static __m256i Load(const float* row, int64_t left) {
    const __m256i first = RoundedBf16(LoadBits(row, left));
    const __m256i second =
        left <= 8 ? Zero() : RoundedBf16(LoadBits(row + 8, left - 8));
    // Four pairs of each within 128-bit lanes: 0 and 2 of one, 1 and 3 of the
    // other after the shuffle, put in order by the permutation.
    const __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(
        _mm256_castsi256_ps(first), _mm256_castsi256_ps(second), 0x88));
    const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(
        _mm256_castsi256_ps(first), _mm256_castsi256_ps(second), 0xdd));
    return _mm256_permute4x64_epi64(
        _mm256_or_si256(_mm256_srli_epi32(even, 16), odd), 0xd8);
  }
};

}  // namespace

void PackF32Avx2(const PackActivationsArgs& args, int64_t panel_begin,
                 int64_t panel_end) {
  PackWords<F32Words256>(args, panel_begin, panel_end);
}

void PackBf16Avx2(const PackActivationsArgs& args, int64_t panel_begin,
                  int64_t panel_end) {
  PackWords<Bf16Words256>(args, panel_begin, panel_end);
}

}  // namespace millrace::kernels
