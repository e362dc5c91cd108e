#pragma once

#include <immintrin.h>

#include <cstdint>

namespace millrace::kernels {
namespace {

// One AVX-512 register. What the operations mean: lanes_array.h.
struct Lanes {
  __m512 v;
};

// Register arrays of the attention loops: vectors that fit beside the operands.
constexpr int kAccumulators = 16;
// Queries whose state stays in registers together.
constexpr int kQueriesMax = 8;

inline __mmask16 FirstMask(int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}
// Lanes [begin, end); both may lie outside [0, 16].
inline __mmask16 RangeMask(int64_t begin, int64_t end) {
  const int64_t low = begin < 0 ? 0 : (begin > 16 ? 16 : begin);
  const int64_t high = end < 0 ? 0 : (end > 16 ? 16 : end);
  return static_cast<__mmask16>(((1u << high) - 1u) & ~((1u << low) - 1u));
}

inline Lanes Set1(float x) { return {_mm512_set1_ps(x)}; }
inline Lanes Load(const float* x) { return {_mm512_loadu_ps(x)}; }
inline Lanes LoadFirst(const float* x, int64_t n) {
  return {_mm512_maskz_loadu_ps(FirstMask(n), x)};
}
inline void Store(Lanes a, float* x) { _mm512_storeu_ps(x, a.v); }
inline void StoreFirst(Lanes a, float* x, int64_t n) {
  _mm512_mask_storeu_ps(x, FirstMask(n), a.v);
}
inline float FirstLane(Lanes a) { return _mm512_cvtss_f32(a.v); }

inline Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Lanes Negate(Lanes a) {
  return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))};
}
inline Lanes Rint(Lanes a) {
  return {
      _mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Lanes Max(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }

inline Lanes TimesPowerOfTwo(Lanes p, Lanes n) {
  return {_mm512_scalef_ps(p.v, n.v)};
}
inline Lanes SelectLess(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v,
                               yes.v)};
}
inline Lanes KeepRange(Lanes a, int64_t begin, int64_t end, Lanes other) {
  return {_mm512_mask_blend_ps(RangeMask(begin, end), other.v, a.v)};
}
inline uint32_t EqualMask(Lanes a, Lanes b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ);
}
inline uint32_t NanMask(Lanes a) {
  return _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
}
inline bool AnyMagnitudeIn(Lanes a, uint32_t low, uint32_t high) {
  const __m512i magnitude =
      _mm512_and_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(0x7fffffff));
  const __m512i offset =
      _mm512_sub_epi32(magnitude, _mm512_set1_epi32(static_cast<int32_t>(low)));
  return _mm512_cmplt_epu32_mask(
             offset, _mm512_set1_epi32(static_cast<int32_t>(high - low))) != 0;
}

inline float TreeSum(Lanes a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v),
                                     _mm512_extractf32x8_ps(a.v, 1));
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(eight),
                        _mm256_extractf128_ps(eight, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
inline float LargestLane(Lanes a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v),
                                     _mm512_extractf32x8_ps(a.v, 1));
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(eight),
                        _mm256_extractf128_ps(eight, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

inline Lanes DuplicateEven(Lanes a) { return {_mm512_moveldup_ps(a.v)}; }
inline Lanes DuplicateOdd(Lanes a) { return {_mm512_movehdup_ps(a.v)}; }

inline Lanes F32FromF16(__m256i h) { return {_mm512_cvtph_ps(h)}; }
inline Lanes F32FromBf16(__m256i h) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
}
inline __m256i LoadHalves(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline __m256i LoadFirstHalves(const void* p, int64_t n) {
  return _mm256_maskz_loadu_epi16(FirstMask(n), p);
}
inline void StoreF16(Lanes a, uint16_t* h) {
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(h),
      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline void StoreBf16(Lanes a, uint16_t* h) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd),
      16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __m512i chosen = _mm512_mask_blend_epi32(
      _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), rounded, quiet);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(h),
                      _mm512_cvtepi32_epi16(chosen));
}

inline Lanes F32FromBytes(const void* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))))};
}
inline Lanes F32FromFirstBytes(const void* p, int64_t n) {
  int8_t bytes[16] = {};
  __builtin_memcpy(bytes, p, static_cast<size_t>(n));
  return F32FromBytes(bytes);
}
inline void StoreBytes(Lanes a, int8_t* bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes),
                   _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

inline float SquareRoot(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

}  // namespace
}  // namespace millrace::kernels
