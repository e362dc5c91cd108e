#include <immintrin.h>

#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul_avx512.h"
#include "kernels/matmul/pack_walk.h"

namespace millrace::kernels {
namespace {

inline __m512i MagnitudeBits(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x),
                          _mm512_set1_epi32(0x7fffffff));
}

inline void StoreBytes16(__m512i q, int8_t* to) {
  _mm_storeu_si128(static_cast<__m128i*>(static_cast<void*>(to)),
                   _mm512_cvtepi32_epi8(q));
}

struct Avx512Group {
  static ActivationRecord Pack(const float* x) {
    const __m512 x0 = _mm512_loadu_ps(x);
    const __m512 x1 = _mm512_loadu_ps(x + 16);
    const uint32_t a = _mm512_reduce_max_epu32(
        _mm512_max_epu32(MagnitudeBits(x0), MagnitudeBits(x1)));
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
    const __m512 inverse = _mm512_set1_ps(127.0f / largest);
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
    const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
    StoreBytes16(q0, record.q);
    StoreBytes16(q1, record.q + 16);
    record.m1 = -_mm512_reduce_add_epi32(q1);
    record.m = record.m1 - _mm512_reduce_add_epi32(q0);
    record.m_float = static_cast<float>(record.m);
    return record;
  }
};

}  // namespace

void PackInt8Avx512(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end) {
  PackInt8Panels<Avx512Group>(args, panel_begin, panel_end);
}

}  // namespace millrace::kernels
