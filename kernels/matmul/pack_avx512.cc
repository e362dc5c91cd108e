#include <immintrin.h>

#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul_avx512.h"

namespace millrace::kernels {
namespace {

inline __m512i MagnitudeBits(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x),
                          _mm512_set1_epi32(0x7fffffff));
}

// One group of a token: x0 and x1 are its halves, 0 beyond the end.
void PackGroup(__m512 x0, __m512 x1, std::byte* to) {
  const uint32_t a = _mm512_reduce_max_epu32(
      _mm512_max_epu32(MagnitudeBits(x0), MagnitudeBits(x1)));
  ActivationRecord record = {};
  if (a >= kInfinityBits) {
    const uint32_t nan = 0x7fc00000;
    std::memcpy(&record.d, &nan, sizeof(nan));
  } else if (a >= kSmallestGroupBits) {
    float largest;
    std::memcpy(&largest, &a, sizeof(largest));
    record.d = largest / 127.0f;
    const __m512 inverse = _mm512_set1_ps(127.0f / largest);
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
    const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
    _mm_storeu_si128(static_cast<__m128i*>(static_cast<void*>(record.q)),
                     _mm512_cvtepi32_epi8(q0));
    _mm_storeu_si128(static_cast<__m128i*>(static_cast<void*>(record.q + 16)),
                     _mm512_cvtepi32_epi8(q1));
    record.m1 = -_mm512_reduce_add_epi32(q1);
    record.m = record.m1 - _mm512_reduce_add_epi32(q0);
    record.m_float = static_cast<float>(record.m);
  }
  std::memcpy(to, &record, sizeof(record));
}

__mmask16 MaskOf(int64_t num) {
  return num >= 16  ? static_cast<__mmask16>(0xffff)
         : num <= 0 ? static_cast<__mmask16>(0)
                    : static_cast<__mmask16>((1 << num) - 1);
}

void PackToken(const float* x, int64_t cols, int64_t step, std::byte* to) {
  int64_t k = 0;
  for (; k + kGroup <= cols; k += kGroup) {
    PackGroup(_mm512_loadu_ps(x + k), _mm512_loadu_ps(x + k + 16), to);
    to += step;
  }
  if (k < cols) {
    const int64_t left = cols - k;
    PackGroup(_mm512_maskz_loadu_ps(MaskOf(left), x + k),
              _mm512_maskz_loadu_ps(MaskOf(left - 16), x + k + 16), to);
  }
}

}  // namespace

void PackInt8Avx512(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end) {
  constexpr int64_t kBytes = sizeof(ActivationRecord);
  const int64_t groups = (args.cols + kGroup - 1) / kGroup;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t begin = PanelBegin(args.num_tokens, panel);
    const int64_t tokens = PanelBegin(args.num_tokens, panel + 1) - begin;
    std::byte* to = args.packed + begin * groups * kBytes;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t token = begin + t;
      const int64_t row =
          args.row_index == nullptr ? token : args.row_index[token];
      PackToken(args.x + row * args.x_stride, args.cols, tokens * kBytes,
                to + t * kBytes);
    }
  }
}

}  // namespace millrace::kernels
