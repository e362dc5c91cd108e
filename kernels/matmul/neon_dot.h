#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/neon_codes.h"

// Exact integer sums of codes times activations: by the byte dot instruction
// where the including file may use it, else by widening products.
namespace millrace::kernels {
namespace {

constexpr int64_t kRecordStep = sizeof(ActivationRecord);

#if defined(__ARM_FEATURE_DOTPROD)

// Chains of dots that wait for each other are taken side by side.
constexpr int kSumsAbreast = 4;

// sum[row] += codes[row][0..4) . x[4 lane ..)
__attribute__((always_inline)) inline int32x4_t DotByElement(int32x4_t sum,
                                                             int8x16_t codes,
                                                             int8x16_t x,
                                                             int lane) {
  switch (lane) {
    case 0:
      return vdotq_laneq_s32(sum, codes, x, 0);
    case 1:
      return vdotq_laneq_s32(sum, codes, x, 1);
    case 2:
      return vdotq_laneq_s32(sum, codes, x, 2);
    default:
      return vdotq_laneq_s32(sum, codes, x, 3);
  }
}

// Adds the dot products of the quads [kFirst, kFirst + kQuads), kQuads a
// multiple of 4, to the sums of kAbreast quarters and kTokens tokens.
template <WeightFormat kFormat, int kFirst, int kQuads, int kAbreast,
          int kTokens>
__attribute__((always_inline)) inline void AddDots(
    const std::byte* codes, const std::byte* records,
    int32x4_t (&sums)[kAbreast][kTokens]) {
  int8x16_t x[kTokens];
#pragma GCC unroll 8
  for (int i = kFirst; i < kFirst + kQuads; ++i) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      if (i % 4 == 0) {
        x[t] = vreinterpretq_s8_u8(
            LoadRegister(records + t * kRecordStep + 4 * i));
      }
    }
#pragma GCC unroll 4
    for (int a = 0; a < kAbreast; ++a) {
      const int8x16_t quad = LoadQuad<kFormat>(codes + kQuarterBytes * a, i);
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        sums[a][t] = DotByElement(sums[a][t], quad, x[t], i % 4);
      }
    }
  }
}

#else

// Each takes two registers and is two chains.
constexpr int kSumsAbreast = 2;

// Quads whose products fit 16 bits together, each byte with its own sum, of at
// most `quads`.
constexpr int QuadsIn16Bits(int largest, int quads) {
  while (quads * largest * 127 > 32767) {
    quads /= 2;
  }
  return quads;
}

// Four bytes of x for each of four rows.
inline int8x16_t BroadcastQuad(const std::byte* x) {
  return vreinterpretq_s8_s32(
      vld1q_dup_s32(static_cast<const int32_t*>(static_cast<const void*>(x))));
}

// 16-bit sums of the quads [begin, end): rows 0 and 1 in `low`, 2 and 3 in
// `high`, four columns of a row side by side.
template <WeightFormat kFormat, int kAbreast, int kTokens>
__attribute__((always_inline)) inline void MultiplyRun(
    const std::byte* codes, const std::byte* records, int begin, int end,
    int16x8_t (&low)[kAbreast][kTokens], int16x8_t (&high)[kAbreast][kTokens]) {
#pragma GCC unroll 8
  for (int i = begin; i < end; ++i) {
    int8x16_t quad[kAbreast];
#pragma GCC unroll 4
    for (int a = 0; a < kAbreast; ++a) {
      quad[a] = LoadQuad<kFormat>(codes + kQuarterBytes * a, i);
    }
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      const int8x16_t x = BroadcastQuad(records + t * kRecordStep + 4 * i);
#pragma GCC unroll 4
      for (int a = 0; a < kAbreast; ++a) {
        const int8x8_t first = vget_low_s8(quad[a]);
        low[a][t] = i == begin ? vmull_s8(first, vget_low_s8(x))
                               : vmlal_s8(low[a][t], first, vget_low_s8(x));
        high[a][t] = i == begin ? vmull_high_s8(quad[a], x)
                                : vmlal_high_s8(high[a][t], quad[a], x);
      }
    }
  }
}

// The same as with the dot instruction.
template <WeightFormat kFormat, int kFirst, int kQuads, int kAbreast,
          int kTokens>
__attribute__((always_inline)) inline void AddDots(
    const std::byte* codes, const std::byte* records,
    int32x4_t (&sums)[kAbreast][kTokens]) {
  constexpr int kRun = QuadsIn16Bits(SignedCodes<kFormat>::kLargest, kQuads);
  int32x4_t pairs[kAbreast][kTokens][2];
#pragma GCC unroll 8
  for (int begin = kFirst; begin < kFirst + kQuads; begin += kRun) {
    int16x8_t low[kAbreast][kTokens];
    int16x8_t high[kAbreast][kTokens];
    MultiplyRun<kFormat>(codes, records, begin, begin + kRun, low, high);
#pragma GCC unroll 4
    for (int a = 0; a < kAbreast; ++a) {
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        int32x4_t(&pair)[2] = pairs[a][t];
        pair[0] = begin == kFirst ? vpaddlq_s16(low[a][t])
                                  : vpadalq_s16(pair[0], low[a][t]);
        pair[1] = begin == kFirst ? vpaddlq_s16(high[a][t])
                                  : vpadalq_s16(pair[1], high[a][t]);
      }
    }
  }
#pragma GCC unroll 4
  for (int a = 0; a < kAbreast; ++a) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      sums[a][t] =
          vaddq_s32(sums[a][t], vpaddq_s32(pairs[a][t][0], pairs[a][t][1]));
    }
  }
}

#endif

}  // namespace
}  // namespace millrace::kernels
