#pragma once

#include <bit>
#include <cstdint>

namespace millrace::kernels {

// FP8 E4M3, the variant without infinities: sign, 4 bits of exponent (bias 7),
// 3 of fraction; largest 448; 0x7f and 0xff are no numbers.

constexpr bool IsFp8Nan(uint8_t code) { return (code & 0x7f) == 0x7f; }

// Exact, for all codes that are numbers.
constexpr float Fp8ToFloat(uint8_t code) {
  // The bits in the place of a float's; the bias differs by 120. Subnormal
  // codes become subnormal floats, which the product normalises.
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(code & 0x7f) << 20;
  return std::bit_cast<float>(sign | magnitude) * 0x1p120f;
}
static_assert(Fp8ToFloat(0x7e) == 448 && Fp8ToFloat(0x81) == -0x1p-9f &&
              Fp8ToFloat(0x38) == 1);

}  // namespace millrace::kernels
