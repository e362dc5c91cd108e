#pragma once

#include "tests/support/emulated_avx512/halves.h"

namespace millrace::emulated {
namespace {

// a 2^floor(b), rounded once. In double the product is exact: a is at least
// 2^-149 and powers beyond 2^+-600 leave the floats in any case.
inline float Scale(float a, float b) {
  double power = __builtin_floor(static_cast<double>(b));
  power = power < -600 ? -600 : power > 600 ? 600 : power;
  if (b != b) {
    return b;
  }
  if (__builtin_isinf(b)) {
    return a * (b < 0 ? 0.0f : b);
  }
  const uint64_t bits = static_cast<uint64_t>(1023 + static_cast<int>(power))
                        << 52;
  double scale;
  __builtin_memcpy(&scale, &bits, sizeof(scale));
  return static_cast<float>(a * scale);
}

inline __m512 ScaleAll(__m512 a, __m512 b) {
  auto x = ElementsOf<float>(a);
  const auto y = ElementsOf<float>(b);
  for (int i = 0; i < 16; ++i) {
    x.at[i] = Scale(x.at[i], y.at[i]);
  }
  return RegisterOf<__m512>(x);
}

inline __m512 DuplicateEvenFloats(__m512 a) {
  const FloatHalves halves = Split(a);
  return Join(_mm256_moveldup_ps(halves.low), _mm256_moveldup_ps(halves.high));
}
inline __m512 DuplicateOddFloats(__m512 a) {
  const FloatHalves halves = Split(a);
  return Join(_mm256_movehdup_ps(halves.low), _mm256_movehdup_ps(halves.high));
}

inline __m512i ShiftRightSigned(__m512i a, unsigned int count) {
  const IntHalves halves = Split(a);
  const int bits = static_cast<int>(count);
  return Join(_mm256_srai_epi32(halves.low, bits),
              _mm256_srai_epi32(halves.high, bits));
}

inline __m256 Half(__m512 a, int which) {
  const FloatHalves halves = Split(a);
  return which == 0 ? halves.low : halves.high;
}

inline __mmask16 LessUnsigned(__m512i a, __m512i b) {
  const auto x = ElementsOf<uint32_t>(a);
  const auto y = ElementsOf<uint32_t>(b);
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    mask |= static_cast<uint32_t>(x.at[i] < y.at[i]) << i;
  }
  return static_cast<__mmask16>(mask);
}

inline int32_t SumOfInts(__m512i a) {
  uint32_t sum = 0;
  for (const uint32_t x : ElementsOf<uint32_t>(a).at) {
    sum += x;
  }
  return static_cast<int32_t>(sum);
}
inline uint32_t LargestUnsigned(__m512i a) {
  uint32_t largest = 0;
  for (const uint32_t x : ElementsOf<uint32_t>(a).at) {
    largest = x > largest ? x : largest;
  }
  return largest;
}

// What is smaller than 2^-126 counts as a zero of the same sign.
inline __m256 FlushSubnormal(__m256 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 small = _mm256_cmp_ps(_mm256_andnot_ps(sign, a),
                                     _mm256_set1_ps(0x1p-126f), _CMP_LT_OQ);
  return _mm256_blendv_ps(a, _mm256_and_ps(a, sign), small);
}

// One step of the paired dot instruction: fused, subnormal operands and results
// flushed. The processor also flushes the sliver below 2^-126 that rounding to
// a subnormal brings up to it; kernels keep clear of all of this.
inline __m256 FlushedFma(__m256 a, __m256 b, __m256 sum) {
  return FlushSubnormal(_mm256_fmadd_ps(FlushSubnormal(a), FlushSubnormal(b),
                                        FlushSubnormal(sum)));
}

inline __m256 OddOfPair(__m256i pairs) {
  return _mm256_castsi256_ps(
      _mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
}
inline __m256 EvenOfPair(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
inline __m256 PairedDotHalf(__m256 sum, __m256i a, __m256i b) {
  sum = FlushedFma(OddOfPair(a), OddOfPair(b), sum);
  return FlushedFma(EvenOfPair(a), EvenOfPair(b), sum);
}

// Odd elements first: the order of the instruction's definition, and what
// processors were seen to do.
inline __m512 PairedDot(__m512 sum, __m512bh a, __m512bh b) {
  __m512i x;
  __m512i y;
  __builtin_memcpy(&x, &a, sizeof(x));
  __builtin_memcpy(&y, &b, sizeof(y));
  const IntHalves left = Split(x);
  const IntHalves right = Split(y);
  const FloatHalves sums = Split(sum);
  return Join(PairedDotHalf(sums.low, left.low, right.low),
              PairedDotHalf(sums.high, left.high, right.high));
}

}  // namespace
}  // namespace millrace::emulated

#undef _mm512_scalef_ps
#define _mm512_scalef_ps ::millrace::emulated::ScaleAll
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps ::millrace::emulated::PairedDot
// gcc has it as a macro where it does not optimize.
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps ::millrace::emulated::Half
#define _mm512_srai_epi32 ::millrace::emulated::ShiftRightSigned
#define _mm512_moveldup_ps ::millrace::emulated::DuplicateEvenFloats
#define _mm512_movehdup_ps ::millrace::emulated::DuplicateOddFloats
#define _mm512_cmplt_epu32_mask ::millrace::emulated::LessUnsigned
#define _mm512_reduce_add_epi32 ::millrace::emulated::SumOfInts
#define _mm512_reduce_max_epu32 ::millrace::emulated::LargestUnsigned
