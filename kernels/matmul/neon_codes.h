#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/register_codes.h"
#include "kernels/quant/tile_layout.h"

// How codes of quantised tiles come into NEON registers: a quarter is 4 of the
// 16 rows of a tile. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int kNumQuads = 8;
constexpr int kQuarters = 4;
constexpr int kQuarterRows = 4;
// Distance of the 16 bytes of a quarter from those of the next in a register
// of a tile.
constexpr int kQuarterBytes = 16;

inline uint8x16_t LoadRegister(const std::byte* from) {
  return vld1q_u8(static_cast<const uint8_t*>(static_cast<const void*>(from)));
}

// Hides how a pointer came about. Of steps that are unrolled gcc would
// otherwise compute all addresses ahead, and hold what several of them load, in
// registers that it has not.
template <typename T>
__attribute__((always_inline)) inline void Hide(const T*& pointer) {
  asm volatile("" : "+r"(pointer));
}

// Every byte shifted by a number that is a constant once loops are unrolled.
__attribute__((always_inline)) inline uint8x16_t ShiftLeft(uint8x16_t a,
                                                           int bits) {
  return bits >= 0 ? a << static_cast<uint8_t>(bits)
                   : a >> static_cast<uint8_t>(-bits);
}

// Two bits of each code of quad `i`, out of two planes of four quads each,
// moved to bit kTo; others come along.
template <int kTo>
__attribute__((always_inline)) inline uint8x16_t MovePairBits(
    const std::byte* planes, int i) {
  return ShiftLeft(LoadRegister(planes + 64 * (i / 4)), kTo - 2 * (i % 4));
}

// The same with one bit, out of a plane of eight quads.
template <int kTo>
__attribute__((always_inline)) inline uint8x16_t MoveSingleBit(
    const std::byte* plane, int i) {
  return ShiftLeft(LoadRegister(plane), kTo - i);
}

// Stored codes of quad `i` of one quarter. `from`: the group's codes, moved to
// the quarter.
template <int kBits>
__attribute__((always_inline)) inline uint8x16_t LoadCodes(
    const std::byte* from, int i) {
  if constexpr (kBits == 8) {
    return LoadRegister(from + 64 * i);
  } else if constexpr (kBits < 4) {
    const uint8x16_t low = vandq_u8(MovePairBits<0>(from, i), vdupq_n_u8(3));
    return kBits == 2
               ? low
               : vbslq_u8(vdupq_n_u8(4), MoveSingleBit<2>(from + 128, i), low);
  }
  const uint8x16_t both = LoadRegister(from + 64 * (i / 2));
  const uint8x16_t low =
      i % 2 == 0 ? vandq_u8(both, vdupq_n_u8(15)) : vshrq_n_u8(both, 4);
  if constexpr (kBits == 5) {
    return vbslq_u8(vdupq_n_u8(16), MoveSingleBit<4>(from + 256, i), low);
  } else if constexpr (kBits == 6) {
    return vbslq_u8(vdupq_n_u8(48), MovePairBits<4>(from + 256, i), low);
  }
  return low;
}

// The same as signed bytes for products: value = byte - SignedCodes::kZero.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline int8x16_t LoadQuad(const std::byte* from,
                                                         int i) {
  using Codes = SignedCodes<kFormat>;
  const uint8x16_t codes = LoadCodes<Codes::kLayout.code_bits>(from, i);
  if constexpr (Codes::kHasTable) {
    return vqtbl1q_s8(vld1q_s8(Codes::kTable.bytes), codes);
  } else if constexpr (Codes::kFlipsSign) {
    return vreinterpretq_s8_u8(veorq_u8(codes, vdupq_n_u8(128)));
  }
  return vreinterpretq_s8_u8(codes);
}

}  // namespace
}  // namespace millrace::kernels
