#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/avx2_format.h"
#include "kernels/matmul/tile_walk.h"

// Fast products of quantised tiles in 256-bit registers, whichever instruction
// forms the integer sums: avx2_quant.h, avxvnni_quant.h.
namespace millrace::kernels {
namespace {

constexpr int64_t kRecordStep = sizeof(ActivationRecord);
// Of a quad: 8 rows.
constexpr int kHalfBytes = 4 * kHalfRows;

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

// Integer sums of 8 rows of one token: of a group, or of its halves.
struct Dots256 {
  __m256i first;
  __m256i second;
};

// What a sum of bytes starts with to end as the sum of values: m * zero.
template <typename Codes>
__attribute__((always_inline)) inline __m256i StartSum(int32_t m) {
  return _mm256_slli_epi32(_mm256_set1_epi32(Codes::kZero < 0 ? -m : m),
                           Codes::kShift);
}

template <typename Codes>
__attribute__((always_inline)) inline Dots256 StartDots(
    const std::byte* record) {
  if constexpr (Codes::kZero == 0) {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  const int32_t m = LoadInt(record + 40);
  if constexpr (HasHalves(Codes::kLayout)) {
    const int32_t m1 = LoadInt(record + 44);
    return {StartSum<Codes>(m - m1), StartSum<Codes>(m1)};
  }
  return {StartSum<Codes>(m), _mm256_setzero_si256()};
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

// Adds one group of kHalves halves of a tile (`codes` is moved to the first) to
// the sums of kTokens tokens, at most four.
template <typename Sums, int kTokens, int kHalves>
__attribute__((always_inline)) inline void AddGroup(
    const std::byte* codes, const Scales256 (&scales)[kHalves],
    const std::byte* records, __m256 (*acc)[kTokens]) {
  Dots256 dots[kHalves][kTokens];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const std::byte* record = records + t * kRecordStep;
    const Dots256 start = StartDots<typename Sums::Codes>(record);
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      dots[h][t] = start;
    }
  }
  Sums::Add(codes, records, dots);
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const std::byte* record = records + t * kRecordStep;
    const __m256 d = _mm256_set1_ps(LoadFloat(record + 32));
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      const __m256 v = ValueOf<Sums::kFormat>(dots[h][t], scales[h], record);
      acc[h][t] = _mm256_fmadd_ps(v, d, acc[h][t]);
    }
  }
}

// kTokens tokens against kHalves halves of a tile, from `half` on.
// `from_memory`: nobody has read the tile before.
template <typename Sums, int kTokens, int kHalves>
void FastSlice(const PanelArgs& args, int half, bool from_memory) {
  using Reader = Reader256<Sums::kFormat>;
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
  ForEachGroup<Sums::kFormat>(
      args.tile, args.cols, from_memory,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
        const std::byte* first = codes + kHalfBytes * half;
        if constexpr (kHalves == 2 && Sums::kHalvesAbreast) {
          AddGroup<Sums, kTokens, 2>(
              first,
              {Reader::ReadScales(place, six, in_record, 0),
               Reader::ReadScales(place, six, in_record, 1)},
              records, acc);
        } else {
#pragma GCC unroll 2
          for (int h = 0; h < kHalves; ++h) {
            AddGroup<Sums, kTokens, 1>(
                first + kHalfBytes * h,
                {Reader::ReadScales(place, six, in_record, half + h)}, records,
                acc + h);
          }
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
// memory.
template <typename Sums, int kTokens>
void FastFew(const PanelArgs& args) {
  FastSlice<Sums, kTokens, 2>(args, 0, true);
}

// More walk it once for each half and four tokens, out of the cache.
template <typename Sums>
void FastPanel(const PanelArgs& args) {
  if (args.tokens == 1) {
    FastFew<Sums, 1>(args);
    return;
  }
  if (args.tokens == 2) {
    FastFew<Sums, 2>(args);
    return;
  }
  for (int64_t begin = 0; begin < args.tokens; begin += 4) {
    const PanelArgs slice = SliceOf(args, begin, kRecordStep);
    for (int half = 0; half < 2; ++half) {
      const bool first = begin == 0 && half == 0;
      switch (args.tokens - begin) {
        case 1:
          FastSlice<Sums, 1, 1>(slice, half, first);
          break;
        case 2:
          FastSlice<Sums, 2, 1>(slice, half, first);
          break;
        case 3:
          FastSlice<Sums, 3, 1>(slice, half, first);
          break;
        default:
          FastSlice<Sums, 4, 1>(slice, half, first);
          break;
      }
    }
  }
}

// Sums has kFormat, Codes (register_codes.h), kHalvesAbreast: whether both
// halves of a tile are taken together, and Add(codes, records, dots): adds the
// exact integer products of a group to dots[half][token].
template <typename Sums>
struct QuantKernel {
  static constexpr WeightFormat kFormat = Sums::kFormat;
  static constexpr ActivationForm kForm = ActivationForm::kInt8;
  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t, int) { return FastPanel<Sums>; }
};

}  // namespace
}  // namespace millrace::kernels
