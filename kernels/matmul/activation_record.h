#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/tile_layout.h"

namespace millrace::kernels {

// One group of 32 activations of a token as int8. m and m1 correct for unsigned
// codes and multiply minima.
struct ActivationRecord {
  int8_t q[kGroup];
  float d;        // x = d * q
  float m_float;  // m as f32
  int32_t m;      // -(q[0] + ... + q[31])
  int32_t m1;     // -(q[16] + ... + q[31])
};
static_assert(sizeof(ActivationRecord) == 48);
static_assert(offsetof(ActivationRecord, d) == 32);
static_assert(offsetof(ActivationRecord, m_float) == 36);
static_assert(offsetof(ActivationRecord, m) == 40);
static_assert(offsetof(ActivationRecord, m1) == 44);

// A group whose largest magnitude is below this counts as zero: 127 / a stays
// finite.
inline constexpr uint32_t kSmallestGroupBits = 0x0d800000;  // 2^-100
inline constexpr uint32_t kInfinityBits = 0x7f800000;

// Most tokens of a panel.
inline constexpr int kMaxPanelTokens = 16;

}  // namespace millrace::kernels
