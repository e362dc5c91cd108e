#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/matmul/activation_record.h"

// For scalar code only, as kernels/vector/elementary.h.
namespace millrace::kernels::scalar {

// The definition of a group of at most 32 numbers as int8: writes the num codes
// q, of magnitude 127 at most, and returns d, x = d * q. A NaN or infinity
// among x makes d NaN; numbers all below 2^-100 make it 0; q is 0 in both.
inline float Int8Group(const float* x, int64_t num, int8_t* q) {
  uint32_t a = 0;
  for (int64_t i = 0; i < num; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffff;
    a = magnitude > a ? magnitude : a;
    q[i] = 0;
  }
  if (a >= kInfinityBits) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (a < kSmallestGroupBits) {
    return 0.0f;
  }
  const float inverse = 127.0f / std::bit_cast<float>(a);
  for (int64_t i = 0; i < num; ++i) {
    q[i] = static_cast<int8_t>(std::rint(x[i] * inverse));
  }
  return std::bit_cast<float>(a) / 127.0f;
}

}  // namespace millrace::kernels::scalar
