#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// Sixteen-bit storage types of keys and values. To nearest, ties to even;
// subnormals are kept. For scalar code only, as elementary.h.
namespace millrace::kernels::scalar {

// IEEE half precision; from 65520 on infinity. A NaN stays one.
inline uint16_t F16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u);
  }
  if (magnitude >= 0x477ff000u) {
    return static_cast<uint16_t>(sign | 0x7c00u);
  }
  if (magnitude >= 0x38800000u) {
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  // A multiple of 2^-24: the addition of 0.5 rounds to it in float.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(
      sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
}

inline float F32FromF16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  }
  if (magnitude >= 0x400u) {
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

// The upper half of a float.
inline uint16_t Bf16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float F32FromBf16(uint16_t h) {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}

}  // namespace millrace::kernels::scalar
