#include <arm_neon.h>

#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul_neon.h"
#include "kernels/matmul/pack_walk.h"

namespace millrace::kernels {
namespace {

constexpr int kRegisters = kGroup / 4;

struct NeonGroup {
  static uint32_t LargestMagnitude(const float32x4_t (&x)[kRegisters]) {
    uint32x4_t largest = vdupq_n_u32(0);
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters; ++i) {
      const uint32x4_t magnitude =
          vandq_u32(vreinterpretq_u32_f32(x[i]), vdupq_n_u32(0x7fffffff));
      largest = vmaxq_u32(largest, magnitude);
    }
    return vmaxvq_u32(largest);
  }

  // q[4i .. 4i + 4) of each register, ties to even; their sums by halves.
  static void Quantise(const float32x4_t (&x)[kRegisters], float32x4_t inverse,
                       ActivationRecord& record) {
    int32x4_t q[kRegisters];
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters; ++i) {
      q[i] = vcvtnq_s32_f32(vmulq_f32(x[i], inverse));
    }
    int32_t sum[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int32x4_t* four = q + 4 * half;
      const int16x8_t low =
          vcombine_s16(vmovn_s32(four[0]), vmovn_s32(four[1]));
      const int16x8_t high =
          vcombine_s16(vmovn_s32(four[2]), vmovn_s32(four[3]));
      vst1q_s8(record.q + 16 * half,
               vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
      sum[half] = vaddvq_s32(
          vaddq_s32(vaddq_s32(four[0], four[1]), vaddq_s32(four[2], four[3])));
    }
    record.m1 = -sum[1];
    record.m = record.m1 - sum[0];
    record.m_float = static_cast<float>(record.m);
  }

  static ActivationRecord Pack(const float* from) {
    float32x4_t x[kRegisters];
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters; ++i) {
      x[i] = vld1q_f32(from + 4 * i);
    }
    const uint32_t a = LargestMagnitude(x);
    ActivationRecord record = {};
    if (a >= kInfinityBits) {
      const uint32_t nan = 0x7fc00000;
      std::memcpy(&record.d, &nan, sizeof(nan));
      return record;
    }
    if (a < kSmallestGroupBits) {
      return record;
    }
    float largest;
    std::memcpy(&largest, &a, sizeof(largest));
    record.d = largest / 127.0f;
    Quantise(x, vdupq_n_f32(127.0f / largest), record);
    return record;
  }
};

}  // namespace

void PackInt8Neon(const PackActivationsArgs& args, int64_t panel_begin,
                  int64_t panel_end) {
  PackInt8Panels<NeonGroup>(args, panel_begin, panel_end);
}

}  // namespace millrace::kernels
