#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

// Sixteen floats in 256-bit registers, and pairs of bf16 as floats. See
// tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// Sixteen lanes.
struct Two256 {
  __m256 low;
  __m256 high;
};

struct Pairs256 {
  Two256 even;
  Two256 odd;
};

__attribute__((always_inline)) inline void FusedStep(Two256& sum,
                                                     const Two256& w,
                                                     __m256 x) {
  sum.low = _mm256_fmadd_ps(w.low, x, sum.low);
  sum.high = _mm256_fmadd_ps(w.high, x, sum.high);
}

inline __m256i LoadYmm(const std::byte* from) {
  return _mm256_loadu_si256(
      static_cast<const __m256i*>(static_cast<const void*>(from)));
}
inline __m128i LoadXmm(const std::byte* from) {
  return _mm_loadu_si128(
      static_cast<const __m128i*>(static_cast<const void*>(from)));
}
inline const float* FloatsOf(const std::byte* from) {
  return static_cast<const float*>(static_cast<const void*>(from));
}
inline float* FloatsAt(std::byte* to) {
  return static_cast<float*>(static_cast<void*>(to));
}
inline void StoreColumn(const Two256& column, float* to) {
  _mm256_store_ps(to, column.low);
  _mm256_store_ps(to + 8, column.high);
}
inline __m256 EvenOfPairs(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
inline __m256 OddOfPairs(__m256i pairs) {
  return _mm256_castsi256_ps(
      _mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
}

// The words of two bf16 of `count` tokens as floats: the odd halves to `odd`,
// the even ones to `even`. Eight at a time, what is beyond `count` as 0: masked
// stores take forty steps on AMD's.
inline void SplitPairs(const float* pairs, int64_t count, float* odd,
                       float* even) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int64_t i = 0; i < count; i += 8) {
    const __m256i there = _mm256_cmpgt_epi32(
        _mm256_set1_epi32(static_cast<int>(count - i)), lanes);
    const __m256i words =
        _mm256_castps_si256(_mm256_maskload_ps(pairs + i, there));
    _mm256_store_ps(odd + i, OddOfPairs(words));
    _mm256_store_ps(even + i, EvenOfPairs(words));
  }
}

}  // namespace
}  // namespace millrace::kernels
