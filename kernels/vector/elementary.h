#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// The elementary functions of the data path, built of correctly rounded steps
// alone, so that they have the same bits everywhere; libm differs between
// libraries. Definitions for scalar code; files compiled for one instruction
// set use kernels/vector/functions_vector.h and must not include this header,
// whose inline functions the linker may share with the whole program.
namespace millrace::kernels::scalar {

// Relative error 8e-8. 0 below -87, infinity above 88.
inline float Exp(float x) {
  if (std::isnan(x)) {
    return x;
  }
  if (x < -87.0f) {
    return 0.0f;
  }
  if (x > 88.0f) {
    return std::numeric_limits<float>::infinity();
  }
  const float n = std::rint(x * 0x1.715476p+0f);
  float r = std::fma(n, -0x1.62e4p-1f, x);
  r = std::fma(n, -0x1.7f7d1cp-20f, r);
  float p = 0x1.6d10fep-10f;
  p = std::fma(p, r, 0x1.120b64p-7f);
  p = std::fma(p, r, 0x1.55551ap-5f);
  p = std::fma(p, r, 0x1.5554dep-3f);
  p = std::fma(p, r, 0x1p-1f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const auto exponent = static_cast<uint32_t>(static_cast<int32_t>(n)) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
}

// x / (1 + exp(-x)), relative error 2e-7.
inline float Silu(float x) { return x / (1.0f + Exp(-x)); }

// Natural logarithm of a normal x > 0.
inline float Log(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const int32_t k = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  const float m = std::bit_cast<float>(bits - (static_cast<uint32_t>(k) << 23));
  const float s = (m - 1.0f) / (m + 1.0f);
  const float z = s * s;
  float p = 0x1.dba26p-3f;
  p = std::fma(p, z, 0x1.bc8cf8p-3f);
  p = std::fma(p, z, 0x1.24c926p-2f);
  p = std::fma(p, z, 0x1.9998d4p-2f);
  p = std::fma(p, z, 0x1.555556p-1f);
  const float l = std::fma(p * z, s, 2.0f * s);
  return std::fma(static_cast<float>(k), 0x1.62e43p-1f, l);
}

// The sum of sixteen lanes in the one order that all versions use. Lanes are
// overwritten.
inline float TreeSum(float lanes[16]) {
  for (int width = 8; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) {
      lanes[l] += lanes[l + width];
    }
  }
  return lanes[0];
}

}  // namespace millrace::kernels::scalar
