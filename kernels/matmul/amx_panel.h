#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/amx_expand.h"
#include "kernels/matmul/expanded_walk.h"
#include "kernels/matmul/prefetch.h"
#include "kernels/quant/tile_layout.h"

// A panel of tokens against expanded groups with the tile registers of AMX,
// whose integer sums are those of every other version. See tile_walk.h for the
// unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int kMaxRows = 16;

// Groups whose integer sums are kept in memory at a time: one is being stored,
// the one before it is added up.
constexpr int kRing = 4;

struct AmxArgs {
  const std::byte* groups;  // [num_groups] expanded
  int64_t num_groups;
  const std::byte* records;  // of the panel's tokens for the first group
  int64_t step;              // bytes from one group's records to the next's
  float* sums;               // [tokens][16 rows], in and out, 64-byte aligned
  // Asked for in passing; a step for each group.
  AheadOfWeights ahead;
};

// Integer sums of a group, or of its halves: [half][token][16 rows].
struct alignas(64) AmxDots {
  int32_t sums[2][kMaxRows][kTileRows];
};

// What Configure writes for the tile registers.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Registers 0 to 3: sums; 4, 5: activations [tokens][bytes of a part]; 6, 7:
// values as quads. A part is a group, or half of it.
inline void Configure(int64_t tokens, bool halves) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    const bool activations = tile == 4 || tile == 5;
    config.row_bytes[tile] = static_cast<uint16_t>(!activations ? 64
                                                   : halves     ? 16
                                                                : 32);
    config.rows[tile] =
        static_cast<uint8_t>(tile < 6 ? tokens : (halves ? 4 : 8));
  }
  // gcc 12 does not know that the instruction reads all of it.
  asm volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// The tile intrinsics do not tell gcc that they read memory.
inline void FinishStores() { asm volatile("" ::: "memory"); }

// Sets register kSum to the dot products of a part. The intrinsics take
// literals only.
template <int kSum, bool kUnsigned>
__attribute__((always_inline)) inline void DotPart(const std::byte* values,
                                                   const std::byte* records) {
  constexpr int64_t kRecordStep = sizeof(ActivationRecord);
  if constexpr (kSum % 2 == 0) {
    _tile_loadd(6, values, 64);
    _tile_loadd(4, records, kRecordStep);
  } else {
    _tile_loadd(7, values, 64);
    _tile_loadd(5, records, kRecordStep);
  }
  if constexpr (kSum == 0 && kUnsigned) {
    _tile_zero(0);
    _tile_dpbsud(0, 4, 6);
  } else if constexpr (kSum == 1 && kUnsigned) {
    _tile_zero(1);
    _tile_dpbsud(1, 5, 7);
  } else if constexpr (kSum == 0) {
    _tile_zero(0);
    _tile_dpbssd(0, 4, 6);
  } else if constexpr (kSum == 1) {
    _tile_zero(1);
    _tile_dpbssd(1, 5, 7);
  } else if constexpr (kSum == 2) {
    _tile_zero(2);
    _tile_dpbssd(2, 4, 6);
  } else {
    _tile_zero(3);
    _tile_dpbssd(3, 5, 7);
  }
}

template <int kSum>
__attribute__((always_inline)) inline void StorePart(
    int32_t (&to)[kMaxRows][kTileRows]) {
  constexpr int64_t kRowBytes = kTileRows * sizeof(int32_t);
  if constexpr (kSum == 0) {
    _tile_stored(0, to, kRowBytes);
  } else if constexpr (kSum == 1) {
    _tile_stored(1, to, kRowBytes);
  } else if constexpr (kSum == 2) {
    _tile_stored(2, to, kRowBytes);
  } else {
    _tile_stored(3, to, kRowBytes);
  }
}

constexpr bool HasHalves(ProductRule rule) {
  return rule == ProductRule::kTwoHalves;
}

// Groups alternate between two sides with registers of their own: the sums of
// one are stored while those of the other come about.
template <ProductRule kRule, bool kUnsigned, int kSide>
__attribute__((always_inline)) inline void DotGroup(const std::byte* group,
                                                    const std::byte* records) {
  if constexpr (HasHalves(kRule)) {
    DotPart<2 * kSide, kUnsigned>(group, records);
    DotPart<2 * kSide + 1, kUnsigned>(group + kExpandedCodeBytes / 2,
                                      records + kGroup / 2);
  } else {
    DotPart<kSide, kUnsigned>(group, records);
  }
}

template <ProductRule kRule, int kSide>
__attribute__((always_inline)) inline void StoreGroup(AmxDots& dots) {
  if constexpr (HasHalves(kRule)) {
    StorePart<2 * kSide>(dots.sums[0]);
    StorePart<2 * kSide + 1>(dots.sums[1]);
  } else {
    StorePart<kSide>(dots.sums[0]);
  }
}

inline __m512 RecordFloat(const std::byte* record, int offset) {
  float value;
  std::memcpy(&value, record + offset, sizeof(value));
  return _mm512_set1_ps(value);
}
struct AmxScales {
  __m512 vector[2];
};

template <ProductRule kRule>
__attribute__((always_inline)) inline __m512 GroupValue(
    const AmxDots& dots, int t, const AmxScales& scales,
    const std::byte* record) {
  const __m512* w = scales.vector;
  const __m512 first = _mm512_cvtepi32_ps(_mm512_load_si512(dots.sums[0][t]));
  if constexpr (kRule == ProductRule::kOneScale) {
    return _mm512_mul_ps(w[0], first);
  } else if constexpr (kRule == ProductRule::kScaleAndMinimum) {
    return _mm512_fmadd_ps(w[0], first,
                           _mm512_mul_ps(w[1], RecordFloat(record, 36)));
  }
  const __m512 second = _mm512_cvtepi32_ps(_mm512_load_si512(dots.sums[1][t]));
  return _mm512_fmadd_ps(w[1], second, _mm512_mul_ps(w[0], first));
}

template <ProductRule kRule, int kTokens>
__attribute__((always_inline)) inline void AddDots(const std::byte* group,
                                                   const std::byte* records,
                                                   const AmxDots& dots,
                                                   __m512* acc) {
  AmxScales scales;
  for (int i = 0; i < NumScales(kRule); ++i) {
    scales.vector[i] =
        _mm512_load_ps(group + kExpandedCodeBytes + i * kVectorBytes);
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    const std::byte* record = records + t * sizeof(ActivationRecord);
    acc[t] = _mm512_fmadd_ps(GroupValue<kRule>(dots, t, scales, record),
                             RecordFloat(record, 32), acc[t]);
  }
}

// Asks for what each group has of the weights ahead. kPlaces: in turn from
// their places, every other group what two would at half of them; else from the
// first on in order, which is less to do.
template <bool kPlaces, int kSide>
__attribute__((always_inline)) inline void AskAhead(const AheadOfWeights& ahead,
                                                    int64_t g) {
  constexpr int kNum = AheadOfWeights::kPlaces;
  if constexpr (kPlaces) {
    const std::byte* const from = ahead.from + (g - kSide) * ahead.step;
#pragma GCC unroll 2
    for (int i = 0; i < kNum / 2; ++i) {
      const int64_t place = kNum / 2 * kSide + i;
      PrefetchLines(from + place * ahead.apart,
                    from + place * ahead.apart + 2 * ahead.step);
    }
  } else {
    const std::byte* const from = ahead.from + g * kNum * ahead.step;
    PrefetchLines(from, from + kNum * ahead.step);
  }
}

// Works on three groups at a time, so that the tile and the vector units are
// busy together: starts group g, stores the sums of g - 1, adds those of g - 2.
template <ProductRule kRule, bool kUnsigned, bool kPlaces, int kTokens,
          int kSide>
__attribute__((always_inline)) inline void Step(const AmxArgs& args, int64_t g,
                                                AmxDots* ring, __m512* acc) {
  constexpr int64_t kBytes = ExpandedGroupBytes(kRule);
  if (g < args.num_groups) {
    AskAhead<kPlaces, kSide>(args.ahead, g);
    DotGroup<kRule, kUnsigned, kSide>(args.groups + g * kBytes,
                                      args.records + g * args.step);
  }
  if (g >= 1 && g - 1 < args.num_groups) {
    StoreGroup<kRule, 1 - kSide>(ring[(g - 1) % kRing]);
  }
  if (g >= 2 && g - 2 < args.num_groups) {
    AddDots<kRule, kTokens>(args.groups + (g - 2) * kBytes,
                            args.records + (g - 2) * args.step,
                            ring[(g - 2) % kRing], acc);
  }
}

// Configure(kTokens, halves) first.
template <ProductRule kRule, bool kUnsigned, bool kPlaces, int kTokens>
void AmxPanel(const AmxArgs& args) {
  AmxDots ring[kRing];
  __m512 acc[kTokens];
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    acc[t] = _mm512_load_ps(args.sums + t * kTileRows);
  }
  FinishStores();
  for (int64_t g = 0; g < args.num_groups + 2; g += 2) {
    Step<kRule, kUnsigned, kPlaces, kTokens, 0>(args, g, ring, acc);
    Step<kRule, kUnsigned, kPlaces, kTokens, 1>(args, g + 1, ring, acc);
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    _mm512_store_ps(args.sums + t * kTileRows, acc[t]);
  }
}

}  // namespace
}  // namespace millrace::kernels
