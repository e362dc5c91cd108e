#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/avx2_format.h"
#include "kernels/matmul/tile_walk.h"

// Fast products of quantised tiles with AVX2. vpmaddubsw saturates at 16 bits,
// so only as many of its results are added up in 16 bits as fit exactly.
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

template <bool kSigned>
__attribute__((always_inline)) inline __m256i DotQuad(__m256i codes,
                                                      const std::byte* record,
                                                      int quad) {
  const __m256i x = _mm256_set1_epi32(LoadInt(record + 4 * quad));
  if constexpr (kSigned) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes),
                                _mm256_sign_epi8(x, codes));
  }
  return _mm256_maddubs_epi16(codes, x);
}

// Integer sums of 8 rows of one token: of a group, or of its halves.
struct Dots256 {
  __m256i first;
  __m256i second;
};

// What a sum of bytes starts with to end as the sum of values: m * zero.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m256i StartSum(int32_t m) {
  using Codes = PairCodes<kFormat>;
  return _mm256_slli_epi32(_mm256_set1_epi32(Codes::kZero < 0 ? -m : m),
                           Codes::kShift);
}

template <WeightFormat kFormat>
__attribute__((always_inline)) inline Dots256 StartDots(
    const std::byte* record) {
  if constexpr (PairCodes<kFormat>::kZero == 0) {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  const int32_t m = LoadInt(record + 40);
  if constexpr (HasHalves(LayoutOf(kFormat))) {
    const int32_t m1 = LoadInt(record + 44);
    return {StartSum<kFormat>(m - m1), StartSum<kFormat>(m1)};
  }
  return {StartSum<kFormat>(m), _mm256_setzero_si256()};
}

// The minima of both halves: wm1 m1 + wm0 m0.
__attribute__((always_inline)) inline __m256 MinimaOf(const Scales256& scales,
                                                      const std::byte* record) {
  const __m256i m = _mm256_set1_epi32(LoadInt(record + 40));
  const __m256i m1 = _mm256_set1_epi32(LoadInt(record + 44));
  const __m256 first =
      _mm256_mul_ps(scales.wm0, _mm256_cvtepi32_ps(_mm256_sub_epi32(m, m1)));
  return _mm256_fmadd_ps(scales.wm1, _mm256_cvtepi32_ps(m1), first);
}

template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m256 ValueOf(const Dots256& dots,
                                                     const Scales256& scales,
                                                     const std::byte* record) {
  constexpr ProductRule kRule = LayoutOf(kFormat).rule;
  const __m256 first = _mm256_cvtepi32_ps(dots.first);
  if constexpr (kRule == ProductRule::kTwoHalves) {
    return _mm256_fmadd_ps(scales.w1, _mm256_cvtepi32_ps(dots.second),
                           _mm256_mul_ps(scales.w0, first));
  } else if constexpr (kRule == ProductRule::kTwoHalvesAndMinima) {
    return _mm256_fmadd_ps(
        scales.w1, _mm256_cvtepi32_ps(dots.second),
        _mm256_fmadd_ps(scales.w0, first, MinimaOf(scales, record)));
  } else if constexpr (kRule == ProductRule::kOneScale) {
    return _mm256_mul_ps(scales.w0, first);
  } else {
    const __m256 m = _mm256_set1_ps(LoadFloat(record + 36));
    return _mm256_fmadd_ps(scales.w0, first, _mm256_mul_ps(scales.wm0, m));
  }
}

// Adds one group of 8 rows (`codes` is moved to them) to the sums of kTokens
// tokens, at most four.
template <WeightFormat kFormat, int kTokens>
__attribute__((always_inline)) inline void AddHalfGroup(
    const std::byte* codes, const Scales256& scales, const std::byte* records,
    __m256* acc) {
  using Codes = PairCodes<kFormat>;
  constexpr int kRun = Codes::QuadsIn16Bits();
  const __m256i ones = _mm256_set1_epi16(1);
  Dots256 dots[kTokens];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    dots[t] = StartDots<kFormat>(records + t * kRecordStep);
  }
#pragma GCC unroll 8
  for (int begin = 0; begin < kNumQuads; begin += kRun) {
    __m256i run[kTokens];
#pragma GCC unroll 8
    for (int i = begin; i < begin + kRun; ++i) {
      const __m256i quad = LoadQuad<kFormat>(codes, i);
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const __m256i dot =
            DotQuad<Codes::kSigned>(quad, records + t * kRecordStep, i);
        run[t] = i == begin ? dot : _mm256_add_epi16(run[t], dot);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      __m256i& sum = HasHalves(Codes::kLayout) && begin >= kNumQuads / 2
                         ? dots[t].second
                         : dots[t].first;
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(run[t], ones));
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const std::byte* record = records + t * kRecordStep;
    const __m256 v = ValueOf<kFormat>(dots[t], scales, record);
    acc[t] = _mm256_fmadd_ps(v, _mm256_set1_ps(LoadFloat(record + 32)), acc[t]);
  }
}

// kTokens tokens against kHalves halves of a tile, from `half` on.
// `from_memory`: nobody has read the tile before.
template <WeightFormat kFormat, int kTokens, int kHalves>
void FastSlice(const PanelArgs& args, int half, bool from_memory) {
  using Reader = Reader256<kFormat>;
  __m256 acc[kHalves][kTokens];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      acc[h][t] = _mm256_setzero_ps();
    }
  }
  const std::byte* records = args.panel;
  const int64_t step = args.tokens * kRecordStep;
  ForEachGroup<kFormat>(
      args.tile, args.cols, from_memory,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
#pragma GCC unroll 2
        for (int h = 0; h < kHalves; ++h) {
          AddHalfGroup<kFormat, kTokens>(
              codes + 4 * kHalfRows * (half + h),
              Reader::ReadScales(place, six, in_record, half + h), records,
              acc[h]);
        }
        records += step;
      });
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      _mm256_store_ps(args.sums + t * kTileRows + kHalfRows * (half + h),
                      acc[h][t]);
    }
  }
}

// One or two tokens walk the tile once, both halves together: it comes from
// memory. More walk it once for each half and four tokens, out of the cache.
template <WeightFormat kFormat>
void FastPanel(const PanelArgs& args) {
  if (args.tokens == 1) {
    FastSlice<kFormat, 1, 2>(args, 0, true);
    return;
  }
  if (args.tokens == 2) {
    FastSlice<kFormat, 2, 2>(args, 0, true);
    return;
  }
  for (int64_t begin = 0; begin < args.tokens; begin += 4) {
    const PanelArgs slice = SliceOf(args, begin, kRecordStep);
    for (int half = 0; half < 2; ++half) {
      const bool first = begin == 0 && half == 0;
      switch (args.tokens - begin) {
        case 1:
          FastSlice<kFormat, 1, 1>(slice, half, first);
          break;
        case 2:
          FastSlice<kFormat, 2, 1>(slice, half, first);
          break;
        case 3:
          FastSlice<kFormat, 3, 1>(slice, half, first);
          break;
        default:
          FastSlice<kFormat, 4, 1>(slice, half, first);
          break;
      }
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
