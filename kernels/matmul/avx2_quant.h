#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/avx2_format.h"
#include "kernels/matmul/tile_walk.h"

// Products of quantised tiles with AVX2. vpmaddubsw saturates at 16 bits, so
// only as many of its results are added up in 16 bits as fit exactly.
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

template <WeightFormat kFormat>
constexpr bool HasHalves() {
  return LayoutOf(kFormat).rule == ProductRule::kTwoHalves;
}

// Quads whose products fit 16 bits together: n * 2 * largest code * 127.
constexpr int QuadsIn16Bits(int code_bits) {
  return code_bits == 4 ? 8 : code_bits == 5 ? 4 : code_bits == 6 ? 2 : 1;
}
static_assert(8 * 2 * 15 * 127 <= 32767 && 4 * 2 * 31 * 127 <= 32767 &&
              2 * 2 * 63 * 127 <= 32767 && 2 * 128 * 127 <= 32767);

template <int kBits>
__attribute__((always_inline)) inline __m256i DotQuad(__m256i codes,
                                                      const std::byte* record,
                                                      int quad) {
  const __m256i x = _mm256_set1_epi32(LoadInt(record + 4 * quad));
  if constexpr (kBits == 8) {
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

template <WeightFormat kFormat>
__attribute__((always_inline)) inline Dots256 StartDots(
    const std::byte* record) {
  constexpr TileLayout kLayout = LayoutOf(kFormat);
  constexpr int kShift = kLayout.zero == 8 ? 3 : kLayout.zero == 16 ? 4 : 5;
  if constexpr (kLayout.zero == 0) {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  const int32_t m = LoadInt(record + 40);
  if constexpr (HasHalves<kFormat>()) {
    const int32_t m1 = LoadInt(record + 44);
    return {_mm256_slli_epi32(_mm256_set1_epi32(m - m1), kShift),
            _mm256_slli_epi32(_mm256_set1_epi32(m1), kShift)};
  }
  return {_mm256_slli_epi32(_mm256_set1_epi32(m), kShift),
          _mm256_setzero_si256()};
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
  } else if constexpr (kRule == ProductRule::kOneScale) {
    return _mm256_mul_ps(scales.w0, first);
  } else {
    const __m256 m = _mm256_set1_ps(LoadFloat(record + 36));
    return _mm256_fmadd_ps(scales.w0, first, _mm256_mul_ps(scales.wm, m));
  }
}

// Adds one group of 8 rows (`codes` is moved to them) to the sums of kTokens
// tokens, at most four.
template <WeightFormat kFormat, int kTokens>
__attribute__((always_inline)) inline void AddHalfGroup(
    const std::byte* codes, const Scales256& scales, const std::byte* records,
    __m256* acc) {
  constexpr int kBits = LayoutOf(kFormat).code_bits;
  constexpr int kRun = QuadsIn16Bits(kBits);
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
      const __m256i quad = LoadQuad<kBits>(codes, i);
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const __m256i dot = DotQuad<kBits>(quad, records + t * kRecordStep, i);
        run[t] = i == begin ? dot : _mm256_add_epi16(run[t], dot);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      __m256i& sum = HasHalves<kFormat>() && begin >= kNumQuads / 2
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
template <WeightFormat kFormat, int kTokens, int kHalves>
void FastSlice(const PanelArgs& args, int half) {
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
      args.tile, args.cols,
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

// The same tile for the tokens of a panel from `begin` on.
inline PanelArgs SliceOf(const PanelArgs& args, int64_t begin,
                         int64_t token_bytes) {
  PanelArgs slice = args;
  slice.panel += begin * token_bytes;
  slice.sums += begin * kTileRows;
  return slice;
}

// One or two tokens walk the tile once, both halves together: it comes from
// memory. More walk it once for each half and four tokens, out of the cache.
template <WeightFormat kFormat>
void FastPanel(const PanelArgs& args) {
  if (args.tokens == 1) {
    FastSlice<kFormat, 1, 2>(args, 0);
    return;
  }
  if (args.tokens == 2) {
    FastSlice<kFormat, 2, 2>(args, 0);
    return;
  }
  for (int64_t begin = 0; begin < args.tokens; begin += 4) {
    const PanelArgs slice = SliceOf(args, begin, kRecordStep);
    for (int half = 0; half < 2; ++half) {
      switch (args.tokens - begin) {
        case 1:
          FastSlice<kFormat, 1, 1>(slice, half);
          break;
        case 2:
          FastSlice<kFormat, 2, 1>(slice, half);
          break;
        case 3:
          FastSlice<kFormat, 3, 1>(slice, half);
          break;
        default:
          FastSlice<kFormat, 4, 1>(slice, half);
          break;
      }
    }
  }
}

// Column k % 4 of a quad as f32.
template <WeightFormat kFormat>
__attribute__((always_inline)) inline __m256 ColumnOf(__m256i quad, int k) {
  constexpr TileLayout kLayout = LayoutOf(kFormat);
  if constexpr (kLayout.code_bits == 8) {
    return _mm256_cvtepi32_ps(
        _mm256_srai_epi32(_mm256_slli_epi32(quad, 24 - 8 * k), 24));
  }
  const __m256i code =
      _mm256_and_si256(_mm256_srli_epi32(quad, 8 * k), _mm256_set1_epi32(255));
  return _mm256_cvtepi32_ps(
      _mm256_sub_epi32(code, _mm256_set1_epi32(kLayout.zero)));
}

template <WeightFormat kFormat, int kTokens>
__attribute__((always_inline)) inline void AddHalfColumns(
    const std::byte* codes, const Scales256& scales, const float* x,
    int64_t stride, __m256* acc) {
  constexpr ProductRule kRule = LayoutOf(kFormat).rule;
#pragma GCC unroll 8
  for (int i = 0; i < kNumQuads; ++i) {
    const __m256i quad = LoadQuad<LayoutOf(kFormat).code_bits>(codes, i);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m256 value = ColumnOf<kFormat>(quad, k);
      __m256 w;
      if constexpr (kRule == ProductRule::kScaleAndMinimum) {
        w = _mm256_fmsub_ps(scales.w0, value, scales.wm);
      } else if constexpr (kRule == ProductRule::kTwoHalves) {
        w = _mm256_mul_ps(i < kNumQuads / 2 ? scales.w0 : scales.w1, value);
      } else {
        w = _mm256_mul_ps(scales.w0, value);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) {
        acc[t] = _mm256_fmadd_ps(w, _mm256_set1_ps(x[t]), acc[t]);
      }
      x += stride;
    }
  }
}

template <WeightFormat kFormat, int kTokens>
void ExactSlice(const PanelArgs& args, int half) {
  using Reader = Reader256<kFormat>;
  __m256 acc[kTokens];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    acc[t] = _mm256_setzero_ps();
  }
  const float* x =
      static_cast<const float*>(static_cast<const void*>(args.panel));
  ForEachGroup<kFormat>(
      args.tile, args.cols,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
        AddHalfColumns<kFormat, kTokens>(
            codes + 4 * kHalfRows * half,
            Reader::ReadScales(place, six, in_record, half), x, args.tokens,
            acc);
        x += kGroup * args.tokens;
      });
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    _mm256_store_ps(args.sums + t * kTileRows + kHalfRows * half, acc[t]);
  }
}

template <WeightFormat kFormat>
void ExactEightOrFewer(const PanelArgs& slice, int64_t tokens, int half) {
  switch (tokens) {
    case 1:
      return ExactSlice<kFormat, 1>(slice, half);
    case 2:
      return ExactSlice<kFormat, 2>(slice, half);
    case 3:
      return ExactSlice<kFormat, 3>(slice, half);
    case 4:
      return ExactSlice<kFormat, 4>(slice, half);
    case 5:
      return ExactSlice<kFormat, 5>(slice, half);
    case 6:
      return ExactSlice<kFormat, 6>(slice, half);
    case 7:
      return ExactSlice<kFormat, 7>(slice, half);
    default:
      return ExactSlice<kFormat, 8>(slice, half);
  }
}

template <WeightFormat kFormat>
void ExactPanel(const PanelArgs& args) {
  for (int64_t begin = 0; begin < args.tokens; begin += 8) {
    const PanelArgs slice = SliceOf(args, begin, sizeof(float));
    for (int half = 0; half < 2; ++half) {
      ExactEightOrFewer<kFormat>(slice, args.tokens - begin, half);
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

template <WeightFormat kWeights>
struct ExactKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t, int) { return ExactPanel<kWeights>; }
};

}  // namespace
}  // namespace millrace::kernels
