#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace millrace::kernels {
namespace {

// Four NEON registers: lanes 0..3, 4..7, 8..11 and 12..15. What the operations
// mean: lanes_array.h.
struct Lanes {
  float32x4_t q[4];
};

// Register arrays of the attention loops: vectors that fit beside the operands.
constexpr int kAccumulators = 4;
// Queries whose state stays in registers together.
constexpr int kQueriesMax = 4;

template <typename Function>
__attribute__((always_inline)) inline Lanes EachQuarter(Function f) {
  return {{f(0), f(1), f(2), f(3)}};
}

// All bits in those of lanes 4 quarter .. 4 quarter + 3 that lie in
// [begin, end).
inline uint32x4_t RangeMask(int quarter, int64_t begin, int64_t end) {
  const int64_t low = begin < 0 ? 0 : (begin > 16 ? 16 : begin);
  const int64_t high = end < 0 ? 0 : (end > 16 ? 16 : end);
  const int32x4_t iota = {0, 1, 2, 3};
  const int32x4_t lane = vaddq_s32(iota, vdupq_n_s32(4 * quarter));
  return vandq_u32(vcgeq_s32(lane, vdupq_n_s32(static_cast<int32_t>(low))),
                   vcltq_s32(lane, vdupq_n_s32(static_cast<int32_t>(high))));
}

inline Lanes Set1(float x) {
  return EachQuarter([&](int) { return vdupq_n_f32(x); });
}
inline Lanes Load(const float* x) {
  return EachQuarter([&](int i) { return vld1q_f32(x + 4 * i); });
}
inline void Store(Lanes a, float* x) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    vst1q_f32(x + 4 * i, a.q[i]);
  }
}
inline Lanes LoadFirst(const float* x, int64_t n) {
  if (n >= 16) {
    return Load(x);
  }
  float first[16] = {};
  __builtin_memcpy(first, x, static_cast<size_t>(n) * sizeof(float));
  return Load(first);
}
inline void StoreFirst(Lanes a, float* x, int64_t n) {
  if (n >= 16) {
    Store(a, x);
    return;
  }
  float all[16];
  Store(a, all);
  __builtin_memcpy(x, all, static_cast<size_t>(n) * sizeof(float));
}
inline float FirstLane(Lanes a) { return vgetq_lane_f32(a.q[0], 0); }

inline Lanes operator+(Lanes a, Lanes b) {
  return EachQuarter([&](int i) { return vaddq_f32(a.q[i], b.q[i]); });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return EachQuarter([&](int i) { return vsubq_f32(a.q[i], b.q[i]); });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return EachQuarter([&](int i) { return vmulq_f32(a.q[i], b.q[i]); });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return EachQuarter([&](int i) { return vdivq_f32(a.q[i], b.q[i]); });
}
inline Lanes Fma(Lanes a, Lanes b, Lanes c) {
  return EachQuarter([&](int i) { return vfmaq_f32(c.q[i], a.q[i], b.q[i]); });
}
inline Lanes Negate(Lanes a) {
  return EachQuarter([&](int i) { return vnegq_f32(a.q[i]); });
}
inline Lanes Rint(Lanes a) {
  return EachQuarter([&](int i) { return vrndnq_f32(a.q[i]); });
}
inline Lanes Max(Lanes a, Lanes b) {
  return EachQuarter([&](int i) { return vmaxq_f32(a.q[i], b.q[i]); });
}

inline Lanes TimesPowerOfTwo(Lanes p, Lanes n) {
  return EachQuarter([&](int i) {
    const int32x4_t exponent = vshlq_n_s32(vcvtnq_s32_f32(n.q[i]), 23);
    return vreinterpretq_f32_s32(
        vaddq_s32(vreinterpretq_s32_f32(p.q[i]), exponent));
  });
}
inline Lanes SelectLess(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return EachQuarter([&](int i) {
    return vbslq_f32(vcltq_f32(a.q[i], b.q[i]), yes.q[i], no.q[i]);
  });
}
inline Lanes KeepRange(Lanes a, int64_t begin, int64_t end, Lanes other) {
  return EachQuarter([&](int i) {
    return vbslq_f32(RangeMask(i, begin, end), a.q[i], other.q[i]);
  });
}

// Bit i is set where lane i of four masks is.
inline uint32_t MaskBits(uint32x4_t q0, uint32x4_t q1, uint32x4_t q2,
                         uint32x4_t q3) {
  const uint16x8_t low = vcombine_u16(vmovn_u32(q0), vmovn_u32(q1));
  const uint16x8_t high = vcombine_u16(vmovn_u32(q2), vmovn_u32(q3));
  const uint8x8_t weight = {1, 2, 4, 8, 16, 32, 64, 128};
  const uint32_t first = vaddv_u8(vand_u8(vmovn_u16(low), weight));
  const uint32_t second = vaddv_u8(vand_u8(vmovn_u16(high), weight));
  return first | second << 8;
}
inline uint32_t EqualMask(Lanes a, Lanes b) {
  return MaskBits(vceqq_f32(a.q[0], b.q[0]), vceqq_f32(a.q[1], b.q[1]),
                  vceqq_f32(a.q[2], b.q[2]), vceqq_f32(a.q[3], b.q[3]));
}
inline uint32_t NanMask(Lanes a) { return EqualMask(a, a) ^ 0xffffu; }
inline bool AnyMagnitudeIn(Lanes a, uint32_t low, uint32_t high) {
  uint32x4_t any = vdupq_n_u32(0);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t magnitude =
        vandq_u32(vreinterpretq_u32_f32(a.q[i]), vdupq_n_u32(0x7fffffff));
    const uint32x4_t offset = vsubq_u32(magnitude, vdupq_n_u32(low));
    any = vorrq_u32(any, vcltq_u32(offset, vdupq_n_u32(high - low)));
  }
  return vmaxvq_u32(any) != 0;
}

inline float TreeSum(Lanes a) {
  const float32x4_t four =
      vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(vpadd_f32(two, two), 0);
}
inline float LargestLane(Lanes a) {
  return vmaxvq_f32(
      vmaxq_f32(vmaxq_f32(a.q[0], a.q[1]), vmaxq_f32(a.q[2], a.q[3])));
}

inline Lanes DuplicateEven(Lanes a) {
  return EachQuarter([&](int i) { return vtrn1q_f32(a.q[i], a.q[i]); });
}
inline Lanes DuplicateOdd(Lanes a) {
  return EachQuarter([&](int i) { return vtrn2q_f32(a.q[i], a.q[i]); });
}

// Sixteen 16-bit numbers.
struct Halves {
  uint16x4_t d[4];
};
inline Halves LoadHalves(const void* p) {
  const auto* h = static_cast<const uint16_t*>(p);
  return {{vld1_u16(h), vld1_u16(h + 4), vld1_u16(h + 8), vld1_u16(h + 12)}};
}
inline Halves LoadFirstHalves(const void* p, int64_t n) {
  uint16_t first[16] = {};
  __builtin_memcpy(first, p, static_cast<size_t>(n) * sizeof(uint16_t));
  return LoadHalves(first);
}
inline Lanes F32FromF16(Halves h) {
  return EachQuarter(
      [&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(h.d[i])); });
}
inline Lanes F32FromBf16(Halves h) {
  return EachQuarter(
      [&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(h.d[i], 16)); });
}
inline void StoreF16(Lanes a, uint16_t* h) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    vst1_u16(h + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(a.q[i])));
  }
}
inline void StoreBf16(Lanes a, uint16_t* h) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a.q[i]);
    const uint32x4_t high = vshrq_n_u32(bits, 16);
    const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
    const uint32x4_t rounded =
        vshrq_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16);
    const uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
    vst1_u16(h + 4 * i,
             vmovn_u32(vbslq_u32(vceqq_f32(a.q[i], a.q[i]), rounded, quiet)));
  }
}

inline Lanes F32FromBytes(const void* p) {
  const int8x16_t bytes = vld1q_s8(static_cast<const int8_t*>(p));
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
  const int16x8_t high = vmovl_s8(vget_high_s8(bytes));
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
           vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
           vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}
inline Lanes F32FromFirstBytes(const void* p, int64_t n) {
  int8_t bytes[16] = {};
  __builtin_memcpy(bytes, p, static_cast<size_t>(n));
  return F32FromBytes(bytes);
}
inline void StoreBytes(Lanes a, int8_t* bytes) {
  const int16x8_t low = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a.q[0])),
                                     vmovn_s32(vcvtnq_s32_f32(a.q[1])));
  const int16x8_t high = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a.q[2])),
                                      vmovn_s32(vcvtnq_s32_f32(a.q[3])));
  vst1q_s8(bytes, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

inline float SquareRoot(float x) {
  return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0);
}

}  // namespace
}  // namespace millrace::kernels
