#pragma once

#include <immintrin.h>

#include <cstdint>

namespace millrace::kernels {
namespace {

// Two AVX registers: lanes 0..7 and 8..15. What the operations mean:
// lanes_array.h.
struct Lanes {
  __m256 lo;
  __m256 hi;
};

// Register arrays of the attention loops: vectors that fit beside the operands.
constexpr int kAccumulators = 6;
// Queries whose state stays in registers together.
constexpr int kQueriesMax = 4;

inline __m256i Iota() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
// All bits where begin <= lane + base < end.
inline __m256i RangeMask(int64_t base, int64_t begin, int64_t end) {
  const int64_t low = begin < 0 ? 0 : (begin > 16 ? 16 : begin);
  const int64_t high = end < 0 ? 0 : (end > 16 ? 16 : end);
  const __m256i lane =
      _mm256_add_epi32(Iota(), _mm256_set1_epi32(static_cast<int>(base)));
  const __m256i above =
      _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(static_cast<int>(low) - 1));
  const __m256i below =
      _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(high)), lane);
  return _mm256_and_si256(above, below);
}

inline Lanes Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Lanes Load(const float* x) {
  return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
}
inline Lanes LoadFirst(const float* x, int64_t n) {
  if (n == 16) {
    return Load(x);
  }
  return {_mm256_maskload_ps(x, RangeMask(0, 0, n)),
          _mm256_maskload_ps(x + 8, RangeMask(8, 0, n))};
}
inline void Store(Lanes a, float* x) {
  _mm256_storeu_ps(x, a.lo);
  _mm256_storeu_ps(x + 8, a.hi);
}
// A masked store takes some twenty times as long as a plain one on processors
// of one maker.
inline void StoreFirst(Lanes a, float* x, int64_t n) {
  if (n == 16) {
    Store(a, x);
    return;
  }
  _mm256_maskstore_ps(x, RangeMask(0, 0, n), a.lo);
  _mm256_maskstore_ps(x + 8, RangeMask(8, 0, n), a.hi);
}
inline float FirstLane(Lanes a) { return _mm256_cvtss_f32(a.lo); }

inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Lanes Negate(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
inline Lanes Rint(Lanes a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
}
inline Lanes Max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

inline __m256 TimesPowerOfTwo(__m256 p, __m256 n) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(p), exponent));
}
inline Lanes TimesPowerOfTwo(Lanes p, Lanes n) {
  return {TimesPowerOfTwo(p.lo, n.lo), TimesPowerOfTwo(p.hi, n.hi)};
}
inline Lanes SelectLess(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return {
      _mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
      _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
inline Lanes KeepRange(Lanes a, int64_t begin, int64_t end, Lanes other) {
  return {_mm256_blendv_ps(other.lo, a.lo,
                           _mm256_castsi256_ps(RangeMask(0, begin, end))),
          _mm256_blendv_ps(other.hi, a.hi,
                           _mm256_castsi256_ps(RangeMask(8, begin, end)))};
}
inline uint32_t SignMask(__m256 lo, __m256 hi) {
  return static_cast<uint32_t>(_mm256_movemask_ps(lo)) |
         static_cast<uint32_t>(_mm256_movemask_ps(hi)) << 8;
}
inline uint32_t EqualMask(Lanes a, Lanes b) {
  return SignMask(_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ),
                  _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ));
}
inline uint32_t NanMask(Lanes a) {
  return SignMask(_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q),
                  _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q));
}
inline __m256i MagnitudeIn(__m256 a, uint32_t low, uint32_t high) {
  // Magnitudes are below 2^31: signed comparisons do.
  const __m256i magnitude =
      _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7fffffff));
  return _mm256_and_si256(
      _mm256_cmpgt_epi32(magnitude,
                         _mm256_set1_epi32(static_cast<int32_t>(low) - 1)),
      _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(high)),
                         magnitude));
}
inline bool AnyMagnitudeIn(Lanes a, uint32_t low, uint32_t high) {
  return _mm256_movemask_epi8(_mm256_or_si256(
             MagnitudeIn(a.lo, low, high), MagnitudeIn(a.hi, low, high))) != 0;
}

inline float TreeSum(Lanes a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(eight),
                        _mm256_extractf128_ps(eight, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
inline float LargestLane(Lanes a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(eight),
                        _mm256_extractf128_ps(eight, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

inline Lanes DuplicateEven(Lanes a) {
  return {_mm256_moveldup_ps(a.lo), _mm256_moveldup_ps(a.hi)};
}
inline Lanes DuplicateOdd(Lanes a) {
  return {_mm256_movehdup_ps(a.lo), _mm256_movehdup_ps(a.hi)};
}

// Sixteen 16-bit numbers, loaded as two halves: splitting one register of 256
// bits takes the place where conversions run and halves the rate of attention.
struct Halves {
  __m128i lo;
  __m128i hi;
};
inline Halves LoadHalves(const void* p) {
  const auto* from = static_cast<const __m128i*>(p);
  return {_mm_loadu_si128(from), _mm_loadu_si128(from + 1)};
}
inline Halves LoadFirstHalves(const void* p, int64_t n) {
  if (n == 8) {
    return {_mm_loadu_si128(static_cast<const __m128i*>(p)),
            _mm_setzero_si128()};
  }
  uint16_t halves[16] = {};
  __builtin_memcpy(halves, p, static_cast<size_t>(n) * sizeof(uint16_t));
  return LoadHalves(halves);
}
inline Lanes F32FromF16(Halves h) {
  return {_mm256_cvtph_ps(h.lo), _mm256_cvtph_ps(h.hi)};
}
inline __m256 F32FromBf16(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
inline Lanes F32FromBf16(Halves h) {
  return {F32FromBf16(h.lo), F32FromBf16(h.hi)};
}
inline void StoreF16(Lanes a, uint16_t* h) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(h), _mm256_cvtps_ph(a.lo, kMode));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(h + 8),
                   _mm256_cvtps_ph(a.hi, kMode));
}
// The bf16 of each lane in the low half of its 32 bits.
inline __m256i Bf16Bits(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd),
      16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(
      rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
}
inline void StoreBf16(Lanes a, uint16_t* h) {
  const __m256i packed = _mm256_packus_epi32(Bf16Bits(a.lo), Bf16Bits(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(h),
                      _mm256_permute4x64_epi64(packed, 0xd8));
}

inline __m256 F32FromEightBytes(const int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline Lanes F32FromBytes(const void* p) {
  const auto* bytes = static_cast<const int8_t*>(p);
  return {F32FromEightBytes(bytes), F32FromEightBytes(bytes + 8)};
}
inline Lanes F32FromFirstBytes(const void* p, int64_t n) {
  int8_t bytes[16] = {};
  __builtin_memcpy(bytes, p, static_cast<size_t>(n));
  return F32FromBytes(bytes);
}
inline void StoreBytes(Lanes a, int8_t* bytes) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)),
      0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes),
                   _mm_packs_epi16(_mm256_castsi256_si128(words),
                                   _mm256_extracti128_si256(words, 1)));
}

inline float SquareRoot(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

}  // namespace
}  // namespace millrace::kernels
