#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/register_codes.h"
#include "kernels/quant/tile_layout.h"

// How codes of quantised tiles come into 256-bit registers: a half is 8 of the
// 16 rows of a tile. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int kNumQuads = 8;
constexpr int kHalfRows = 8;

inline __m256i LoadYmm(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline __m128i LoadXmm(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
// Moves the bits of bytes up by `by`, or down; bits of neighbours come along.
__attribute__((always_inline)) inline __m256i MoveBits(__m256i bits, int by) {
  return by > 0 ? _mm256_slli_epi16(bits, by) : _mm256_srli_epi16(bits, -by);
}

// Two bits of each code of quad `i`, out of two planes of four quads each, at
// bit kTo.
template <int kTo>
__attribute__((always_inline)) inline __m256i LoadPairBits(
    const std::byte* planes, int i) {
  const __m256i plane = LoadYmm(planes + 64 * (i / 4));
  return _mm256_and_si256(MoveBits(plane, kTo - 2 * (i % 4)),
                          _mm256_set1_epi8(3 << kTo));
}

// One bit of each code of quad `i`, out of a plane of eight quads, at bit kTo.
template <int kTo>
__attribute__((always_inline)) inline __m256i LoadSingleBit(
    const std::byte* from, int i) {
  return _mm256_and_si256(MoveBits(LoadYmm(from), kTo - i),
                          _mm256_set1_epi8(1 << kTo));
}

// Stored codes of quad `i` of one half of a tile. `from`: the group's codes,
// moved to the half.
template <int kBits>
__attribute__((always_inline)) inline __m256i LoadCodes(const std::byte* from,
                                                        int i) {
  if constexpr (kBits == 8) {
    return LoadYmm(from + 64 * i);
  } else if constexpr (kBits == 2) {
    return LoadPairBits<0>(from, i);
  } else if constexpr (kBits == 3) {
    return _mm256_or_si256(LoadPairBits<0>(from, i),
                           LoadSingleBit<2>(from + 128, i));
  }
  const __m256i both = LoadYmm(from + 64 * (i / 2));
  const __m256i low = _mm256_and_si256(
      i % 2 == 0 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
  if constexpr (kBits == 5) {
    return _mm256_or_si256(low, LoadSingleBit<4>(from + 256, i));
  } else if constexpr (kBits == 6) {
    return _mm256_or_si256(low, LoadPairBits<4>(from + 256, i));
  }
  return low;
}

// The same as bytes for products (register_codes.h): value = byte -
// Codes::kZero.
template <typename Codes>
__attribute__((always_inline)) inline __m256i LoadQuad(const std::byte* from,
                                                       int i) {
  const __m256i codes = LoadCodes<Codes::kLayout.code_bits>(from, i);
  if constexpr (Codes::kFlipsSign) {
    return _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
  } else if constexpr (Codes::kHasTable) {
    const __m256i table =
        _mm256_broadcastsi128_si256(LoadXmm(Codes::kTable.bytes));
    return _mm256_shuffle_epi8(table, codes);
  }
  return codes;
}

}  // namespace
}  // namespace millrace::kernels
