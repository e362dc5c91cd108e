#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx2_panel.h"
#include "kernels/matmul/avx2_quant.h"
#include "kernels/matmul/expanded_group.h"
#include "kernels/matmul/expanded_walk.h"
#include "kernels/matmul/rows_avx2.h"

// Fast products of quantised tiles with AVX2. Sixteen rows meet two to four
// tokens at a time, whose sums stay in the first-level cache; for more tokens
// groups are decoded once for all panels of a block. See tile_walk.h for the
// unnamed namespace.
namespace millrace::kernels {
namespace {

// Of both halves of a tile and some tokens.
template <int kTokens>
using Many256 = __m256i[2][kTokens];

template <WeightFormat kFormat>
struct ManyCodes {
  using Bytes = PairCodes<kFormat>;
  static constexpr TileLayout kLayout = Bytes::kLayout;
  static constexpr int kQuadsOfPart =
      HasHalves(kLayout) ? kNumQuads / 2 : kNumQuads;
  // Quads whose products are added up in 16 bits.
  static constexpr int kRun = Bytes::QuadsIn16Bits();
  // At a time. Runs of two quads need both in registers.
  static constexpr int64_t kTokens = kRun == 2 ? 3 : 4;
  static constexpr int64_t kGroupBytes = ExpandedGroupBytes(kLayout.rule);
};

// A group decoded by ExpandGroups, for AddGroupOfMany.
template <WeightFormat kFormat>
struct ExpandedGroup {
  const std::byte* at;

  [[nodiscard]] __m256i Quad(int i, int half) const {
    return LoadYmm(at + 64 * i + kHalfBytes * half);
  }
  [[nodiscard]] Scales256 ReadScales(int half) const {
    constexpr ProductRule kRule = LayoutOf(kFormat).rule;
    Scales256 scales;
    scales.w0 = Scale(0, half);
    if constexpr (kRule == ProductRule::kScaleAndMinimum) {
      scales.wm0 = Scale(1, half);
    } else if constexpr (kRule != ProductRule::kOneScale) {
      scales.w1 = Scale(1, half);
    }
    if constexpr (kRule == ProductRule::kTwoHalvesAndMinima) {
      scales.wm0 = Scale(2, half);
      scales.wm1 = Scale(3, half);
    }
    return scales;
  }
  static void StoreScale(__m256 scale, std::byte* group, int index, int half) {
    StoreYmm(_mm256_castps_si256(scale), group + ScaleAt(index, half));
  }

 private:
  static constexpr int64_t ScaleAt(int index, int half) {
    return kExpandedCodeBytes + index * kVectorBytes + kHalfBytes * half;
  }
  [[nodiscard]] __m256 Scale(int index, int half) const {
    return _mm256_castsi256_ps(LoadYmm(at + ScaleAt(index, half)));
  }
};

// A group where it stands in its tile.
template <WeightFormat kFormat>
struct TileGroup {
  const std::byte* codes;
  Scales256 scales[2];

  [[nodiscard]] __m256i Quad(int i, int half) const {
    return LoadQuad<PairCodes<kFormat>>(codes + kHalfBytes * half, i);
  }
  [[nodiscard]] const Scales256& ReadScales(int half) const {
    return scales[half];
  }
};

// Writes the groups [begin, end) of a tile to `out`, 64-byte aligned.
template <WeightFormat kFormat>
void ExpandGroups(const std::byte* tile, int64_t cols, int64_t begin,
                  int64_t end, std::byte* out) {
  using Reader = Reader256<kFormat>;
  using Codes = ManyCodes<kFormat>;
  using Group = ExpandedGroup<kFormat>;
  constexpr ProductRule kRule = Reader::kLayout.rule;
  ForGroups<kFormat>(
      tile, cols, begin, end, true,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
        for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 8
          for (int i = 0; i < kNumQuads; ++i) {
            StoreYmm(
                LoadQuad<typename Codes::Bytes>(codes + kHalfBytes * half, i),
                out + 64 * i + kHalfBytes * half);
          }
          const Scales256 scales =
              Reader::ReadScales(place, six, in_record, half);
          Group::StoreScale(scales.w0, out, 0, half);
          if constexpr (kRule == ProductRule::kScaleAndMinimum) {
            Group::StoreScale(scales.wm0, out, 1, half);
          } else if constexpr (kRule != ProductRule::kOneScale) {
            Group::StoreScale(scales.w1, out, 1, half);
          }
          if constexpr (kRule == ProductRule::kTwoHalvesAndMinima) {
            Group::StoreScale(scales.wm0, out, 2, half);
            Group::StoreScale(scales.wm1, out, 3, half);
          }
        }
        out += Codes::kGroupBytes;
      });
}

// Adds the products of the quads [begin, begin + kRun), which fit 16 bits
// together, to `dots`, or sets them. Long runs are added up in 16 bits quad by
// quad; of short ones both sums would be more than there are registers.
template <typename Codes, int kTokens, bool kFirst, typename Group>
__attribute__((always_inline)) inline void AddRun(const Group& group,
                                                  const std::byte* records,
                                                  int begin,
                                                  Many256<kTokens>& dots) {
  constexpr int kRun = Codes::kRun;
  constexpr bool kSigned = Codes::Bytes::kSigned;
  constexpr int kAtOnce = kRun <= 2 ? kRun : 1;
  const __m256i ones = _mm256_set1_epi16(1);
  Many256<kTokens> run;
#pragma GCC unroll 8
  for (int i = begin; i < begin + kRun; i += kAtOnce) {
    __m256i quad[kAtOnce][2];
#pragma GCC unroll 2
    for (int j = 0; j < kAtOnce; ++j) {
      quad[j][0] = group.Quad(i + j, 0);
      quad[j][1] = group.Quad(i + j, 1);
    }
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      const std::byte* record = records + t * kRecordStep;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        __m256i dot = DotQuad<kSigned>(quad[0][half], record, i);
        if constexpr (kAtOnce == 2) {
          dot = _mm256_add_epi16(
              dot, DotQuad<kSigned>(quad[1][half], record, i + 1));
        }
        dot = i == begin ? dot : _mm256_add_epi16(run[half][t], dot);
        run[half][t] = dot;
        if (i + kAtOnce == begin + kRun) {
          const __m256i sum = _mm256_madd_epi16(dot, ones);
          dots[half][t] = kFirst ? sum : _mm256_add_epi32(dots[half][t], sum);
        }
      }
    }
  }
}

// The integer products of a part of a group, its half or all of it.
template <typename Codes, int kTokens, typename Group>
__attribute__((always_inline)) inline void DotPart(const Group& group,
                                                   const std::byte* records,
                                                   int part,
                                                   Many256<kTokens>& dots) {
  const int begin = part * Codes::kQuadsOfPart;
  AddRun<Codes, kTokens, true>(group, records, begin, dots);
#pragma GCC unroll 8
  for (int i = Codes::kRun; i < Codes::kQuadsOfPart; i += Codes::kRun) {
    AddRun<Codes, kTokens, false>(group, records, begin + i, dots);
  }
}

// The value of the first part of a group, which is all of it without halves.
template <ProductRule kRule>
__attribute__((always_inline)) inline __m256 FirstValue(
    __m256i sum, const Scales256& scales, const std::byte* record) {
  const __m256 first = _mm256_cvtepi32_ps(sum);
  if constexpr (kRule == ProductRule::kScaleAndMinimum) {
    const __m256 m = _mm256_set1_ps(LoadFloat(record + 36));
    return _mm256_fmadd_ps(scales.w0, first, _mm256_mul_ps(scales.wm0, m));
  } else if constexpr (kRule == ProductRule::kTwoHalvesAndMinima) {
    return _mm256_fmadd_ps(scales.w0, first, MinimaOf(scales, record));
  } else {
    return _mm256_mul_ps(scales.w0, first);
  }
}

template <typename Bytes>
__attribute__((always_inline)) inline __m256i AddStart(__m256i sum,
                                                       __m256i start) {
  return Bytes::kZero == 0 ? sum : _mm256_add_epi32(sum, start);
}

// Adds one group to sums[token][16 rows].
template <WeightFormat kFormat, int kTokens, typename Group>
__attribute__((always_inline)) inline void AddGroupOfMany(
    const Group& group, const std::byte* records, float* sums) {
  using Codes = ManyCodes<kFormat>;
  using Bytes = typename Codes::Bytes;
  constexpr ProductRule kRule = Codes::kLayout.rule;
  Many256<kTokens> dots;
  DotPart<Codes, kTokens>(group, records, 0, dots);
  __m256 value[2][kTokens];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const std::byte* record = records + t * kRecordStep;
    const __m256i start = StartDots<Bytes>(record).first;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      value[half][t] = FirstValue<kRule>(AddStart<Bytes>(dots[half][t], start),
                                         group.ReadScales(half), record);
    }
  }
  if constexpr (HasHalves(Codes::kLayout)) {
    DotPart<Codes, kTokens>(group, records, 1, dots);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      const __m256i start = StartDots<Bytes>(records + t * kRecordStep).second;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        value[half][t] = _mm256_fmadd_ps(
            group.ReadScales(half).w1,
            _mm256_cvtepi32_ps(AddStart<Bytes>(dots[half][t], start)),
            value[half][t]);
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const __m256 d = _mm256_set1_ps(LoadFloat(records + t * kRecordStep + 32));
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      float* sum = sums + t * kTileRows + kHalfRows * half;
      _mm256_store_ps(sum,
                      _mm256_fmadd_ps(value[half][t], d, _mm256_load_ps(sum)));
    }
  }
}

// Asked for in passing.
struct AskedBytes {
  const std::byte* from;
  int64_t of_group;
};

struct ManyArgs {
  const std::byte* groups;  // [num_groups] expanded
  int64_t num_groups;
  const std::byte* records;  // of the first group and token
  int64_t step;              // bytes from one group's records to the next's
  float* sums;               // [token][16 rows], in and out, 32-byte aligned
  AskedBytes asked;
};

template <WeightFormat kFormat, int kTokens>
void AddMany(const ManyArgs& args) {
  const std::byte* group = args.groups;
  const std::byte* records = args.records;
  const std::byte* asked = args.asked.from;
  for (int64_t g = 0; g < args.num_groups; ++g) {
    PrefetchLines(asked, asked + args.asked.of_group);
    asked += args.asked.of_group;
    AddGroupOfMany<kFormat, kTokens>(ExpandedGroup<kFormat>{group}, records,
                                     args.sums);
    group += ManyCodes<kFormat>::kGroupBytes;
    records += args.step;
  }
}

// For ExpandedWalk.
template <WeightFormat kWeights>
struct ManyDecoder {
  using Rows = Rows256;
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kInt8;
  static constexpr int64_t kTiles = 1;
  static constexpr int64_t kColumns = 8 * kGroup;
  static constexpr int64_t kBytes = 8 * ManyCodes<kWeights>::kGroupBytes;
  // The first slice of a panel asks for weights, the others for the next
  // panel's activations.
  static constexpr int64_t kStepColumns = kGroup;
  static bool Asks() { return true; }
  static int64_t PartsAhead(int64_t, int64_t) { return 1; }
  static void Finish() {}

  static void Expand(const std::byte* tile, int64_t cols, int64_t begin,
                     int64_t end, std::byte* out) {
    ExpandGroups<kFormat>(tile, cols, begin / kGroup, end / kGroup, out);
  }
  static int64_t Offset(int64_t column, int64_t tokens) {
    return column / kGroup * tokens * kRecordStep;
  }
  static int64_t Add(const ExpandedArgs& args) {
    using AddFn = void (*)(const ManyArgs& args);
    constexpr int64_t kMost = ManyCodes<kFormat>::kTokens;
    static constexpr AddFn kAdd[] = {AddMany<kFormat, 1>, AddMany<kFormat, 2>,
                                     AddMany<kFormat, 3>,
                                     AddMany<kFormat, kMost>};
    const int64_t slices = (args.tokens + kMost - 1) / kMost;
    const int64_t groups = args.columns / kGroup;
    constexpr int64_t kPlaces = AheadOfWeights::kPlaces;
    AskedBytes asked = {args.ahead.from, kPlaces * args.ahead.step};
    for (int64_t slice = 0; slice < slices; ++slice) {
      const int64_t begin = slice * args.tokens / slices;
      const int64_t end = (slice + 1) * args.tokens / slices;
      kAdd[end - begin - 1]({.groups = args.weights,
                             .num_groups = groups,
                             .records = args.activations + begin * kRecordStep,
                             .step = args.tokens * kRecordStep,
                             .sums = args.sums + begin * kTileRows,
                             .asked = asked});
      if (slice > 0) {
        asked.from += groups * asked.of_group;
      } else if (args.next_activations != nullptr && slices > 1) {
        asked = {args.next_activations,
                 args.tokens * kRecordStep / (slices - 1)};
      } else {
        asked = {};
      }
    }
    return kPlaces * args.ahead.bytes;
  }
};

// The tokens [first, first + kTokens) of a panel of kOf against a tile where it
// stands.
template <WeightFormat kFormat, int kTokens, int kOf>
void AddSlice(const PanelArgs& args, int first) {
  using Reader = Reader256<kFormat>;
  float* const sums = args.sums + first * kTileRows;
  for (int t = 0; t < kTokens; ++t) {
    Rows256::Clear(sums + t * kTileRows);
  }
  const std::byte* records = args.panel + first * kRecordStep;
  ForEachGroup<kFormat>(
      args.tile, args.cols, true,
      [&](const std::byte* codes, const RecordPlace& place, const SixBits& six,
          int64_t in_record) __attribute__((always_inline)) {
        const TileGroup<kFormat> group = {
            codes,
            {Reader::ReadScales(place, six, in_record, 0),
             Reader::ReadScales(place, six, in_record, 1)}};
        AddGroupOfMany<kFormat, kTokens>(group, records, sums);
        records += kOf * kRecordStep;
      });
}

// A panel of few tokens, for which decoding a tile first does not pay. Where
// there are two slices the second finds the tile in the first-level cache.
template <WeightFormat kFormat, int kTokens>
void AddFromTile(const PanelArgs& args) {
  if constexpr (kTokens <= 4) {
    AddSlice<kFormat, kTokens, kTokens>(args, 0);
  } else {
    constexpr int kFirst = (kTokens + 1) / 2;
    AddSlice<kFormat, kFirst, kTokens>(args, 0);
    AddSlice<kFormat, kTokens - kFirst, kTokens>(args, kFirst);
  }
}

template <WeightFormat kWeights>
struct FewKernel {
  static constexpr WeightFormat kFormat = kWeights;
  static constexpr ActivationForm kForm = ActivationForm::kInt8;
  // Twice as many of codes that one run adds up: they are the quickest, decoded
  // ones too.
  using Codes = ManyCodes<kFormat>;
  static constexpr int64_t kMost = Codes::kRun == Codes::kQuadsOfPart ? 8 : 4;

  static int SideTiles(int64_t) { return 1; }
  static PanelFn Choose(int64_t tokens, int) {
    if constexpr (kMost == 8) {
      static constexpr PanelFn kTwice[] = {
          AddFromTile<kFormat, 5>, AddFromTile<kFormat, 6>,
          AddFromTile<kFormat, 7>, AddFromTile<kFormat, 8>};
      if (tokens > 4) {
        return kTwice[tokens - 5];
      }
    }
    return tokens == 1   ? FastFew<PairSums<kFormat>, 1>
           : tokens == 2 ? AddFromTile<kFormat, 2>
           : tokens == 3 ? AddFromTile<kFormat, 3>
                         : AddFromTile<kFormat, 4>;
  }
};

template <WeightFormat kFormat>
void MatMulFast(const MatMulArgs& args, int64_t tile_begin, int64_t tile_end) {
  if (args.num_tokens <= FewKernel<kFormat>::kMost) {
    MatMulTiles<FewKernel<kFormat>>(args, tile_begin, tile_end);
  } else {
    ExpandedWalk<ManyDecoder<kFormat>>(args).Run(tile_begin, tile_end);
  }
}

}  // namespace
}  // namespace millrace::kernels
