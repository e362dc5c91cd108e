#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/asks_ahead.h"
#include "kernels/matmul/avx512_exact.h"
#include "kernels/matmul/avx512_format.h"
#include "kernels/matmul/matmul_avx512.h"
#include "kernels/matmul/panel_choice.h"
#include "kernels/matmul/tile_walk.h"

// Products of quantised tiles with AVX-512 and its byte dot instruction.
namespace millrace::kernels {
namespace {

constexpr int64_t kRecordStep = sizeof(ActivationRecord);

inline int32_t LoadInt(const std::byte* from) {
  int32_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
inline float LoadFloat(const std::byte* from) {
  float value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline __m512i DotQuad(__m512i sum, __m512i codes, const std::byte* record,
                       int quad) {
  return _mm512_dpbusd_epi32(sum, codes,
                             _mm512_set1_epi32(LoadInt(record + 4 * quad)));
}

// Where a sum of unsigned bytes starts so that it ends as that of values.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m512i StartSum(int32_t m) {
  using Codes = DotCodes<kFormat>;
  return Codes::kZero == 0
             ? _mm512_setzero_si512()
             : _mm512_slli_epi32(_mm512_set1_epi32(m), Codes::kShift);
}

// Integer sums of one token: of a group, or of its halves; a lone token has two
// chains in any case, so that dots do not wait for each other.
struct Dots512 {
  __m512i first;
  __m512i second;
};

template <WeightFormat kFormat>
__attribute__((always_inline)) inline Dots512 StartDots(
    const std::byte* record) {
  const int32_t m = LoadInt(record + 40);
  if constexpr (HasHalves(LayoutOf(kFormat))) {
    const int32_t m1 = LoadInt(record + 44);
    return {StartSum<kFormat>(m - m1), StartSum<kFormat>(m1)};
  }
  return {StartSum<kFormat>(m), _mm512_setzero_si512()};
}

// The minima of both halves: wm1 m1 + wm0 m0.
__attribute__((always_inline)) inline __m512 MinimaOf(const Scales512& scales,
                                                      const std::byte* record) {
  const __m512i m = _mm512_set1_epi32(LoadInt(record + 40));
  const __m512i m1 = _mm512_set1_epi32(LoadInt(record + 44));
  const __m512 first =
      _mm512_mul_ps(scales.wm0, _mm512_cvtepi32_ps(_mm512_sub_epi32(m, m1)));
  return _mm512_fmadd_ps(scales.wm1, _mm512_cvtepi32_ps(m1), first);
}

template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m512 ValueOf(const Dots512& dots,
                                                     bool split,
                                                     const Scales512& scales,
                                                     const std::byte* record) {
  constexpr ProductRule kRule = LayoutOf(kFormat).rule;
  const __m512 first = _mm512_cvtepi32_ps(dots.first);
  if constexpr (kRule == ProductRule::kTwoHalves) {
    return _mm512_fmadd_ps(scales.w1, _mm512_cvtepi32_ps(dots.second),
                           _mm512_mul_ps(scales.w0, first));
  } else if constexpr (kRule == ProductRule::kTwoHalvesAndMinima) {
    return _mm512_fmadd_ps(
        scales.w1, _mm512_cvtepi32_ps(dots.second),
        _mm512_fmadd_ps(scales.w0, first, MinimaOf(scales, record)));
  }
  const __m512 whole = _mm512_cvtepi32_ps(
      split ? _mm512_add_epi32(dots.first, dots.second) : dots.first);
  if constexpr (kRule == ProductRule::kOneScale) {
    return _mm512_mul_ps(scales.w0, whole);
  } else {
    const __m512 m = _mm512_set1_ps(LoadFloat(record + 36));
    return _mm512_fmadd_ps(scales.w0, whole, _mm512_mul_ps(scales.wm0, m));
  }
}

// Adds one group to the sums of kTokens (at most four) tokens side by side: one
// after the other, the scheduler would see only dots that wait for each other.
template <WeightFormat kFormat, int kTokens>
__attribute__((always_inline)) inline void AddSlice(const Codes512& codes,
                                                    const Scales512& scales,
                                                    const std::byte* records,
                                                    __m512* acc) {
  constexpr bool kSplit = HasHalves(LayoutOf(kFormat)) || kTokens == 1;
  Dots512 dots[kTokens];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    dots[t] = StartDots<kFormat>(records + t * kRecordStep);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kNumQuads; ++i) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      __m512i& sum =
          kSplit && i >= kNumQuads / 2 ? dots[t].second : dots[t].first;
      sum = DotQuad(sum, codes.quad[i], records + t * kRecordStep, i);
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const std::byte* record = records + t * kRecordStep;
    const __m512 v = ValueOf<kFormat>(dots[t], kSplit, scales, record);
    acc[t] = _mm512_fmadd_ps(v, _mm512_set1_ps(LoadFloat(record + 32)), acc[t]);
  }
}

template <WeightFormat kFormat, int kTokens>
__attribute__((always_inline)) inline void AddGroup(const Codes512& codes,
                                                    const Scales512& scales,
                                                    const std::byte* records,
                                                    __m512* acc) {
  if constexpr (kTokens <= 4) {
    AddSlice<kFormat, kTokens>(codes, scales, records, acc);
  } else {
    AddSlice<kFormat, 4>(codes, scales, records, acc);
    AddGroup<kFormat, kTokens - 4>(codes, scales, records + 4 * kRecordStep,
                                   acc + 4);
  }
}

template <int kTokens>
__attribute__((always_inline)) inline void ClearSums(__m512* acc) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    acc[t] = _mm512_setzero_ps();
  }
}

template <int kTokens>
__attribute__((always_inline)) inline void KeepSums(const __m512* acc,
                                                    float* sums) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    _mm512_store_ps(sums + t * kTileRows, acc[t]);
  }
}

template <WeightFormat kFormat, int kTokens, bool kAhead>
void FastPanel(const PanelArgs& args) {
  __m512 acc[kTokens];
  ClearSums<kTokens>(acc);
  const std::byte* records = args.panel;
  const int64_t step = args.tokens * kRecordStep;
  ForGroups<kFormat, kAhead>(
      args.tile, args.cols, 0, args.cols / kGroup,
      [&](const Codes512& codes, const Scales512& scales, int64_t)
          __attribute__((always_inline)) {
            AddGroup<kFormat, kTokens>(codes, scales, records, acc);
            records += step;
          });
  KeepSums<kTokens>(acc, args.sums);
}

template <WeightFormat kWeights>
struct FastKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kInt8;
  template <int kTokens>
  struct Panel {
    static void Run(const PanelArgs& args) {
      FastPanel<kWeights, kTokens, false>(args);
    }
  };
  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t tokens, int) {
    static constexpr PanelFn kAhead[] = {
        FastPanel<kWeights, 1, true>, FastPanel<kWeights, 2, true>,
        FastPanel<kWeights, 3, true>, FastPanel<kWeights, 4, true>};
    if (tokens <= kFewTokens && AsksAhead()) {
      return kAhead[tokens - 1];
    }
    return ChoosePanel<Panel>(tokens);
  }
};

}  // namespace
}  // namespace millrace::kernels
