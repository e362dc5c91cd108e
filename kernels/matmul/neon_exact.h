#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/neon_format.h"
#include "kernels/matmul/tile_walk.h"

// Exact products of quantised tiles with NEON: codes become f32 and meet f32
// activations.
namespace millrace::kernels {
namespace {

// Quad `i` of a quarter as values: code - zero. Those of 8 unsigned bits keep
// them.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline int8x16_t LoadValues(
    const std::byte* codes, int i) {
  using Codes = SignedCodes<kFormat>;
  if constexpr (Codes::kFlipsSign) {
    return vreinterpretq_s8_u8(LoadCodes<8>(codes, i));
  }
  const int8x16_t quad = LoadQuad<kFormat>(codes, i);
  return Codes::kZero == 0 ? quad : vsubq_s8(quad, vdupq_n_s8(Codes::kZero));
}

// Column k % 4 of a quad of values as f32.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline float32x4_t ColumnOf(int8x16_t quad,
                                                           int k) {
  if constexpr (SignedCodes<kFormat>::kFlipsSign) {
    const uint32x4_t words = vreinterpretq_u32_s8(quad);
    return vcvtq_f32_u32((words << static_cast<uint32_t>(24 - 8 * k)) >> 24u);
  }
  const int32x4_t words = vreinterpretq_s32_s8(quad);
  return vcvtq_f32_s32((words << (24 - 8 * k)) >> 24);
}

// The weights of one column.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline float32x4_t Weights(
    const ScalesNeon& scales, float32x4_t value, bool second_half) {
  const float32x4_t scale = second_half ? scales.w1 : scales.w0;
  if constexpr (LayoutOf(kFormat).minimum != Minimum::kNone) {
    const float32x4_t minimum = second_half ? scales.wm1 : scales.wm0;
    return vfmaq_f32(vnegq_f32(minimum), scale, value);
  } else {
    return vmulq_f32(scale, value);
  }
}

// Adds the quads [kFirst, kFirst + kQuads) of kSlice quarters to the sums of
// kTokens tokens.
template <WeightFormat kFormat, int kFirst, int kQuads, int kSlice, int kTokens>
__attribute__((always_inline)) inline void AddColumns(
    const std::byte* codes, const ScalesNeon (&scales)[kSlice], const float* x,
    int64_t stride, float32x4_t (&acc)[kSlice][kTokens]) {
#pragma GCC unroll 8
  for (int i = kFirst; i < kFirst + kQuads; ++i) {
    int8x16_t quad[kSlice];
#pragma GCC unroll 4
    for (int q = 0; q < kSlice; ++q) {
      quad[q] = LoadValues<kFormat>(codes + kQuarterBytes * q, i);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      float32x4_t w[kSlice];
#pragma GCC unroll 4
      for (int q = 0; q < kSlice; ++q) {
        w[q] = Weights<kFormat>(
            scales[q], ColumnOf<kFormat>(quad[q], k),
            HasHalves(LayoutOf(kFormat)) && i >= kNumQuads / 2);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) {
        const float32x4_t broadcast = vld1q_dup_f32(x + t);
#pragma GCC unroll 4
        for (int q = 0; q < kSlice; ++q) {
          acc[q][t] = vfmaq_f32(acc[q][t], w[q], broadcast);
        }
      }
      x += stride;
      Hide(x);
    }
  }
}

// Half a group or, where all of it has one scale, the whole.
template <WeightFormat kFormat, int kFirst, int kSlice, int kTokens>
__attribute__((always_inline)) inline void AddHalf(
    const std::byte* codes, RecordPlace place, const SixBits& six,
    int64_t in_record, int quarter, const float* x, int64_t stride,
    float32x4_t (&acc)[kSlice][kTokens]) {
  constexpr bool kHalves = HasHalves(LayoutOf(kFormat));
  Hide(place.record);
  ScalesNeon scales[kSlice];
#pragma GCC unroll 4
  for (int q = 0; q < kSlice; ++q) {
    scales[q] =
        ReaderNeon<kFormat>::ReadScales(place, six, in_record, quarter + q);
  }
  AddColumns<kFormat, kFirst, kHalves ? kNumQuads / 2 : kNumQuads>(
      codes + kQuarterBytes * quarter, scales, x, stride, acc);
}

template <WeightFormat kFormat, int kTokens, int kSlice>
void ExactSlice(const PanelArgs& args, int quarter) {
  float32x4_t acc[kSlice][kTokens];
#pragma GCC unroll 4
  for (int q = 0; q < kSlice; ++q) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      acc[q][t] = vdupq_n_f32(0);
    }
  }
  const float* x =
      static_cast<const float*>(static_cast<const void*>(args.panel));
  ForEachGroup<kFormat>(
      args.tile, args.cols,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
        AddHalf<kFormat, 0>(codes, place, six, in_record, quarter, x,
                            args.tokens, acc);
        if constexpr (HasHalves(LayoutOf(kFormat))) {
          AddHalf<kFormat, kNumQuads / 2>(codes, place, six, in_record, quarter,
                                          x + kGroup / 2 * args.tokens,
                                          args.tokens, acc);
        }
        x += kGroup * args.tokens;
      });
#pragma GCC unroll 4
  for (int q = 0; q < kSlice; ++q) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      vst1q_f32(args.sums + t * kTileRows + kQuarterRows * (quarter + q),
                acc[q][t]);
    }
  }
}

// Tokens whose sums with two quarters stay in registers, beside what a group
// needs.
template <WeightFormat kFormat>
constexpr int ExactTokens() {
  return HasHalves(LayoutOf(kFormat)) ? 6 : 8;
}

// The first kTokens of `tokens` tokens, or all, against two quarters.
template <WeightFormat kFormat, int kTokens>
void ExactHalf(const PanelArgs& slice, int64_t tokens, int quarter) {
  if constexpr (kTokens > 1) {
    if (tokens < kTokens) {
      return ExactHalf<kFormat, kTokens - 1>(slice, tokens, quarter);
    }
  }
  ExactSlice<kFormat, kTokens, 2>(slice, quarter);
}

// A lone token takes all rows together: with two registers of sums its fused
// steps would wait for each other.
template <WeightFormat kFormat>
void ExactPanel(const PanelArgs& args) {
  constexpr int kTokens = ExactTokens<kFormat>();
  if (args.tokens == 1) {
    ExactSlice<kFormat, 1, 4>(args, 0);
    return;
  }
  for (int64_t begin = 0; begin < args.tokens; begin += kTokens) {
    PanelArgs slice = args;
    slice.panel += begin * static_cast<int64_t>(sizeof(float));
    slice.sums += begin * kTileRows;
    for (int quarter = 0; quarter < kQuarters; quarter += 2) {
      ExactHalf<kFormat, kTokens>(slice, args.tokens - begin, quarter);
    }
  }
}

template <WeightFormat kWeights>
struct ExactKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t, int) { return ExactPanel<kWeights>; }
};

}  // namespace
}  // namespace millrace::kernels
