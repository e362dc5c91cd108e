#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::kernels {

// Little-endian loads and stores without alignment.
template <typename T>
T LoadBytes(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
template <typename T>
void StoreBytes(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
}
static_assert(std::endian::native == std::endian::little,
              "checkpoints, tiles and frames are little-endian");

// IEEE half to single: exact, subnormals kept, a NaN stays a NaN.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  // Multiplying by 2^112 moves the exponent's bias and normalizes subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

inline float Bf16ToFloat(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

// Half of the E8M0 scale 2^(code - 127): what multiplies doubled E2M1 values.
// Code 0 gives 0; 255, which no checkpoint may hold, infinity.
inline constexpr uint8_t kE8m0NotANumber = 255;
inline float E8m0ToHalfScale(uint8_t code) {
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 23) * 0.5f;
}

// To nearest, ties to even; subnormals kept, a NaN stays a NaN.
inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Operands of fast products below 2^-50 count as +0: below it the paired dot
// instruction, which flushes subnormals, could differ from two fused steps.
inline constexpr uint16_t kBf16FlushBelow = 0x2680;
inline uint16_t FlushTinyBf16(uint16_t bf16) {
  return (bf16 & 0x7fff) < kBf16FlushBelow ? 0 : bf16;
}

}  // namespace millrace::kernels
