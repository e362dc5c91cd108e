#include <immintrin.h>

#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul_avx2.h"
#include "kernels/matmul/pack_walk.h"

namespace millrace::kernels {
namespace {

inline __m256i MagnitudeBits(__m256 x) {
  return _mm256_and_si256(_mm256_castps_si256(x),
                          _mm256_set1_epi32(0x7fffffff));
}

inline uint32_t LargestOf(__m256i values) {
  __m128i four = _mm_max_epu32(_mm256_castsi256_si128(values),
                               _mm256_extracti128_si256(values, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}

inline int32_t SumOf(__m256i values) {
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(values),
                               _mm256_extracti128_si256(values, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}

struct Avx2Group {
  static ActivationRecord Pack(const float* x) {
    const __m256 x0 = _mm256_loadu_ps(x);
    const __m256 x1 = _mm256_loadu_ps(x + 8);
    const __m256 x2 = _mm256_loadu_ps(x + 16);
    const __m256 x3 = _mm256_loadu_ps(x + 24);
    const uint32_t a = LargestOf(_mm256_max_epu32(
        _mm256_max_epu32(MagnitudeBits(x0), MagnitudeBits(x1)),
        _mm256_max_epu32(MagnitudeBits(x2), MagnitudeBits(x3))));
    ActivationRecord record = {};
    if (a >= kInfinityBits) {
      const uint32_t nan = 0x7fc00000;
      std::memcpy(&record.d, &nan, sizeof(nan));
      return record;
    }
    if (a < kSmallestGroupBits) {
      return record;
    }
    float largest;
    std::memcpy(&largest, &a, sizeof(largest));
    record.d = largest / 127.0f;
    const __m256 inverse = _mm256_set1_ps(127.0f / largest);
    const __m256i q0 = _mm256_cvtps_epi32(_mm256_mul_ps(x0, inverse));
    const __m256i q1 = _mm256_cvtps_epi32(_mm256_mul_ps(x1, inverse));
    const __m256i q2 = _mm256_cvtps_epi32(_mm256_mul_ps(x2, inverse));
    const __m256i q3 = _mm256_cvtps_epi32(_mm256_mul_ps(x3, inverse));
    // Packing works within 128-bit lanes: four dwords each of q0, q1, q2, q3.
    const __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32(q0, q1),
                                             _mm256_packs_epi32(q2, q3));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(static_cast<__m256i*>(static_cast<void*>(record.q)),
                        _mm256_permutevar8x32_epi32(mixed, order));
    record.m1 = -SumOf(_mm256_add_epi32(q2, q3));
    record.m = record.m1 - SumOf(_mm256_add_epi32(q0, q1));
    record.m_float = static_cast<float>(record.m);
    return record;
  }
};

}  // namespace

void PackInt8Avx2(const PackActivationsArgs& args, int64_t panel_begin,
                  int64_t panel_end) {
  PackInt8Panels<Avx2Group>(args, panel_begin, panel_end);
}

}  // namespace millrace::kernels
