#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/register_codes.h"
#include "kernels/quant/tile_layout.h"

// How codes of quantised tiles come into registers; see tile_walk.h for the
// unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int kNumQuads = 8;

inline __m128i LoadXmm(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
inline __m256i LoadYmm(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

// Codes of a group as unsigned bytes, four k of 16 rows in each register:
// value = byte - DotCodes::kZero.
struct Codes512 {
  __m512i quad[kNumQuads];
};

// a | (b & mask) in one instruction.
inline __m512i OrMasked(__m512i a, __m512i b, __m512i mask) {
  return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}

// Moves the bits of bytes up by `by`, or down; bits of neighbours come along.
__attribute__((always_inline)) inline __m512i MoveBits(__m512i bits, int by) {
  return by > 0 ? _mm512_slli_epi16(bits, static_cast<unsigned>(by))
                : _mm512_srli_epi16(bits, static_cast<unsigned>(-by));
}

// Adds two bits of each code, out of two planes of four quads each, at bit
// `to`.
__attribute__((always_inline)) inline void AddPairBits(const std::byte* planes,
                                                       int to,
                                                       Codes512& codes) {
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(3 << to));
#pragma GCC unroll 8
  for (int i = 0; i < kNumQuads; ++i) {
    const __m512i plane = _mm512_loadu_si512(planes + 64 * (i / 4));
    codes.quad[i] =
        OrMasked(codes.quad[i], MoveBits(plane, to - 2 * (i % 4)), mask);
  }
}

// Adds one bit of each code, out of a plane of eight quads, at bit `to`.
__attribute__((always_inline)) inline void AddSingleBits(const std::byte* from,
                                                         int to,
                                                         Codes512& codes) {
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(1 << to));
  const __m512i plane = _mm512_loadu_si512(from);
#pragma GCC unroll 8
  for (int i = 0; i < kNumQuads; ++i) {
    codes.quad[i] = OrMasked(codes.quad[i], MoveBits(plane, to - i), mask);
  }
}

__attribute__((always_inline)) inline void LoadNibbles(const std::byte* from,
                                                       Codes512& codes) {
  const __m512i nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int i = 0; i < kNumQuads / 2; ++i) {
    const __m512i both = _mm512_loadu_si512(from + 64 * i);
    codes.quad[2 * i] = _mm512_and_si512(both, nibble);
    codes.quad[2 * i + 1] =
        _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
  }
}

// Codes as stored.
template <int kBits>
__attribute__((always_inline)) inline void LoadStoredCodes(
    const std::byte* from, Codes512& codes) {
  if constexpr (kBits >= 4 && kBits < 8) {
    LoadNibbles(from, codes);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < kNumQuads; ++i) {
      codes.quad[i] = kBits == 8 ? _mm512_loadu_si512(from + 64 * i)
                                 : _mm512_setzero_si512();
    }
  }
  if constexpr (kBits == 2 || kBits == 3) {
    AddPairBits(from, 0, codes);
  }
  if constexpr (kBits == 3) {
    AddSingleBits(from + 128, 2, codes);
  } else if constexpr (kBits == 5) {
    AddSingleBits(from + 256, 4, codes);
  } else if constexpr (kBits == 6) {
    AddPairBits(from + 256, 4, codes);
  }
}

template <WeightFormat kFormat>
__attribute__((always_inline)) inline void LoadCodes(const std::byte* from,
                                                     Codes512& codes) {
  using Registers = DotCodes<kFormat>;
  LoadStoredCodes<Registers::kLayout.code_bits>(from, codes);
  if constexpr (Registers::kFlipsSign) {
    const __m512i flip = _mm512_set1_epi8(-128);
#pragma GCC unroll 8
    for (int i = 0; i < kNumQuads; ++i) {
      codes.quad[i] = _mm512_xor_si512(codes.quad[i], flip);
    }
  } else if constexpr (Registers::kHasTable) {
    const __m512i table =
        _mm512_broadcast_i32x4(LoadXmm(Registers::kTable.bytes));
#pragma GCC unroll 8
    for (int i = 0; i < kNumQuads; ++i) {
      codes.quad[i] = _mm512_shuffle_epi8(table, codes.quad[i]);
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
