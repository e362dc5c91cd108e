#pragma once

#include "tests/support/emulated_avx512/halves.h"

// Conversions between types of elements. AVX2 has those that round.
namespace millrace::emulated {
namespace {

inline __m512 FloatsOfHalfs(__m256i a) {
  return Join(_mm256_cvtph_ps(_mm256_castsi256_si128(a)),
              _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1)));
}

inline __m512 FloatsOfInts(__m512i a) {
  const IntHalves halves = Split(a);
  return Join(_mm256_cvtepi32_ps(halves.low), _mm256_cvtepi32_ps(halves.high));
}

inline __m512i IntsOfFloats(__m512 a) {
  const FloatHalves halves = Split(a);
  return Join(_mm256_cvtps_epi32(halves.low), _mm256_cvtps_epi32(halves.high));
}

// Elements to narrower or wider ones of type To: the low bits, or all of them
// extended as From's sign says.
template <typename Result, typename To, typename From, typename Source>
inline Result ConvertInts(Source a) {
  const auto from = ElementsOf<From>(a);
  Elements<To, sizeof(Source) / sizeof(From)> to;
  for (int i = 0; i < static_cast<int>(sizeof(Source) / sizeof(From)); ++i) {
    to.at[i] = static_cast<To>(from.at[i]);
  }
  return RegisterOf<Result>(to);
}

inline __m128i BytesOfInts(__m512i a) {
  return ConvertInts<__m128i, uint8_t, uint32_t>(a);
}
inline __m256i WordsOfInts(__m512i a) {
  return ConvertInts<__m256i, uint16_t, uint32_t>(a);
}
inline __m512i IntsOfBytes(__m128i a) {
  return ConvertInts<__m512i, uint32_t, uint8_t>(a);
}
inline __m512i IntsOfSignedBytes(__m128i a) {
  return ConvertInts<__m512i, int32_t, int8_t>(a);
}
inline __m512i IntsOfWords(__m256i a) {
  return ConvertInts<__m512i, uint32_t, uint16_t>(a);
}

inline __m512i WordsOfBytes(__m256i a) {
  return ConvertInts<__m512i, uint16_t, uint8_t>(a);
}

inline float FirstFloat(__m512 a) { return ElementsOf<float>(a).at[0]; }

}  // namespace
}  // namespace millrace::emulated

#define _mm512_cvtph_ps ::millrace::emulated::FloatsOfHalfs
#define _mm512_cvtepi32_ps ::millrace::emulated::FloatsOfInts
#define _mm512_cvtps_epi32 ::millrace::emulated::IntsOfFloats
#define _mm512_cvtepi32_epi8 ::millrace::emulated::BytesOfInts
#define _mm512_cvtepi32_epi16 ::millrace::emulated::WordsOfInts
#define _mm512_cvtepu8_epi32 ::millrace::emulated::IntsOfBytes
#define _mm512_cvtepi8_epi32 ::millrace::emulated::IntsOfSignedBytes
#define _mm512_cvtepu16_epi32 ::millrace::emulated::IntsOfWords
#define _mm512_cvtepu8_epi16 ::millrace::emulated::WordsOfBytes
#define _mm512_cvtss_f32 ::millrace::emulated::FirstFloat
// The rounding is part of the instruction, hence no function.
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(a, rounding)                                    \
  _mm256_set_m128i(                                                     \
      _mm256_cvtps_ph(::millrace::emulated::Split(a).high, (rounding)), \
      _mm256_cvtps_ph(::millrace::emulated::Split(a).low, (rounding)))
