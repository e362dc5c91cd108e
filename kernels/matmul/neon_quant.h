#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/neon_dot.h"
#include "kernels/matmul/neon_format.h"
#include "kernels/matmul/tile_walk.h"

// Fast products of quantised tiles with NEON.
namespace millrace::kernels {
namespace {

// What stands behind the bytes of an activation record.
struct RecordTail {
  float32x4_t scales;     // d, m as f32
  int32x4_t corrections;  // lanes 2 and 3: m, m1
};
__attribute__((always_inline)) inline RecordTail LoadTail(
    const std::byte* record) {
  const uint8x16_t bytes = LoadRegister(record + 32);
  return {vreinterpretq_f32_u8(bytes), vreinterpretq_s32_u8(bytes)};
}

// Where the sum of bytes over the half `half` of a group, or over the whole of
// it, starts so that it ends as that of values: m * zero.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline int32x4_t StartSum(
    const std::byte* record, int half) {
  using Codes = SignedCodes<kFormat>;
  if constexpr (Codes::kZero == 0) {
    return vdupq_n_s32(0);
  }
  const int32x4_t tail = LoadTail(record).corrections;
  int32x4_t m = vdupq_laneq_s32(tail, 2);
  if constexpr (HasHalves(LayoutOf(kFormat))) {
    const int32x4_t m1 = vdupq_laneq_s32(tail, 3);
    m = half == 0 ? vsubq_s32(m, m1) : m1;
  }
  return vshlq_n_s32(Codes::kZero < 0 ? vnegq_s32(m) : m, Codes::kShift);
}

// Sums over [kFirst, kFirst + kQuads) of kAbreast quarters as f32.
template <WeightFormat kFormat, int kFirst, int kQuads, int kAbreast,
          int kTokens>
__attribute__((always_inline)) inline void SumQuads(
    const std::byte* codes, const std::byte* records,
    float32x4_t (&out)[kAbreast][kTokens]) {
  int32x4_t sums[kAbreast][kTokens];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const int32x4_t start =
        StartSum<kFormat>(records + t * kRecordStep, kFirst == 0 ? 0 : 1);
#pragma GCC unroll 4
    for (int a = 0; a < kAbreast; ++a) {
      sums[a][t] = start;
    }
  }
  AddDots<kFormat, kFirst, kQuads>(codes, records, sums);
#pragma GCC unroll 4
  for (int a = 0; a < kAbreast; ++a) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      out[a][t] = vcvtq_f32_s32(sums[a][t]);
    }
  }
}

// The minima of both halves: wm1 m1 + wm0 m0.
__attribute__((always_inline)) inline float32x4_t MinimaOf(
    const ScalesNeon& scales, const std::byte* record) {
  const int32x4_t tail = LoadTail(record).corrections;
  const int32x4_t m1 = vdupq_laneq_s32(tail, 3);
  const int32x4_t m0 = vsubq_s32(vdupq_laneq_s32(tail, 2), m1);
  return vfmaq_f32(vmulq_f32(scales.wm0, vcvtq_f32_s32(m0)), scales.wm1,
                   vcvtq_f32_s32(m1));
}

// The sums of a group, or of its halves, as f32.
template <int kAbreast, int kTokens>
struct GroupSums {
  float32x4_t first[kAbreast][kTokens];
  float32x4_t second[kAbreast][kTokens];
};

template <WeightFormat kFormat, int kAbreast, int kTokens>
__attribute__((always_inline)) inline void SumGroup(
    const std::byte* codes, const std::byte* records,
    GroupSums<kAbreast, kTokens>& sums) {
  if constexpr (HasHalves(LayoutOf(kFormat))) {
    constexpr int kHalf = kNumQuads / 2;
    SumQuads<kFormat, 0, kHalf>(codes, records, sums.first);
    Hide(records);
    SumQuads<kFormat, kHalf, kHalf>(codes, records, sums.second);
  } else {
    SumQuads<kFormat, 0, kNumQuads>(codes, records, sums.first);
  }
}

// The value of a group for four rows and a token, from its sums.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline float32x4_t ValueOf(
    float32x4_t first, float32x4_t second, const ScalesNeon& scales,
    const std::byte* record) {
  constexpr ProductRule kRule = LayoutOf(kFormat).rule;
  if constexpr (kRule == ProductRule::kOneScale) {
    return vmulq_f32(scales.w0, first);
  } else if constexpr (kRule == ProductRule::kScaleAndMinimum) {
    const float32x4_t m = LoadTail(record).scales;
    return vfmaq_f32(vmulq_laneq_f32(scales.wm0, m, 1), scales.w0, first);
  } else if constexpr (kRule == ProductRule::kTwoHalves) {
    return vfmaq_f32(vmulq_f32(scales.w0, first), scales.w1, second);
  } else {
    return vfmaq_f32(vfmaq_f32(MinimaOf(scales, record), scales.w0, first),
                     scales.w1, second);
  }
}

// kTokens tokens, at most four, against kSlice quarters of a tile, from
// `quarter` on.
template <WeightFormat kFormat, int kTokens, int kSlice>
void FastSlice(const PanelArgs& args, int quarter) {
  using Reader = ReaderNeon<kFormat>;
  constexpr int kMost = kTokens < kSumsAbreast ? kSumsAbreast / kTokens : 1;
  constexpr int kAbreast = kMost < kSlice ? kMost : kSlice;
  float32x4_t acc[kSlice][kTokens];
#pragma GCC unroll 4
  for (int q = 0; q < kSlice; ++q) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      acc[q][t] = vdupq_n_f32(0);
    }
  }
  const std::byte* panel = args.panel;
  const int64_t step = args.tokens * kRecordStep;
  ForEachGroup<kFormat>(
      args.tile, args.cols,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int q = 0; q < kSlice; q += kAbreast) {
          const std::byte* records = panel;
          Hide(records);
          GroupSums<kAbreast, kTokens> sums;
          SumGroup<kFormat>(codes + kQuarterBytes * (quarter + q), records,
                            sums);
          Hide(records);
#pragma GCC unroll 4
          for (int a = 0; a < kAbreast; ++a) {
            const ScalesNeon scales =
                Reader::ReadScales(place, six, in_record, quarter + q + a);
#pragma GCC unroll 4
            for (int t = 0; t < kTokens; ++t) {
              const std::byte* record = records + t * kRecordStep;
              const float32x4_t v = ValueOf<kFormat>(
                  sums.first[a][t], sums.second[a][t], scales, record);
              acc[q + a][t] =
                  vfmaq_laneq_f32(acc[q + a][t], v, LoadTail(record).scales, 0);
            }
          }
        }
        panel += step;
      });
#pragma GCC unroll 4
  for (int q = 0; q < kSlice; ++q) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      vst1q_f32(args.sums + t * kTileRows + kQuarterRows * (quarter + q),
                acc[q][t]);
    }
  }
}

// Quarters whose sums over groups stay in registers, beside what a group needs.
template <WeightFormat kFormat, int kTokens>
constexpr int QuartersOfSlice() {
  constexpr int kRegisters = HasHalves(LayoutOf(kFormat)) ? 7 : 12;
  constexpr int kFitting = kRegisters / kTokens;
  return kFitting >= 4 ? 4 : kFitting >= 2 ? 2 : 1;
}

// kTokens tokens against a tile. A lone one, for which the tile comes from
// memory, walks it once.
template <WeightFormat kFormat, int kTokens>
void FastTile(const PanelArgs& args) {
  constexpr int kSlice = QuartersOfSlice<kFormat, kTokens>();
  for (int quarter = 0; quarter < kQuarters; quarter += kSlice) {
    FastSlice<kFormat, kTokens, kSlice>(args, quarter);
  }
}

template <WeightFormat kFormat>
void FastPanel(const PanelArgs& args) {
  for (int64_t begin = 0; begin < args.tokens; begin += 4) {
    PanelArgs slice = args;
    slice.panel += begin * kRecordStep;
    slice.sums += begin * kTileRows;
    switch (args.tokens - begin) {
      case 1:
        FastTile<kFormat, 1>(slice);
        break;
      case 2:
        FastTile<kFormat, 2>(slice);
        break;
      case 3:
        FastTile<kFormat, 3>(slice);
        break;
      default:
        FastTile<kFormat, 4>(slice);
        break;
    }
  }
}

template <WeightFormat kWeights>
struct FastKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kInt8;
  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t, int) { return FastPanel<kWeights>; }
};

}  // namespace
}  // namespace millrace::kernels
