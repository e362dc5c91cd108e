#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx2_float.h"
#include "kernels/matmul/expanded_walk.h"
#include "kernels/matmul/prefetch.h"
#include "kernels/matmul/rows_avx2.h"

// Products in single precision for several tokens with AVX2. Sixteen rows and
// six tokens keep both fused units busy, but leave no register in which a
// weight could be decoded: columns are first written out as floats. See
// tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int64_t kWideTokens = 6;  // at a time
constexpr int64_t kTurnColumns = 4;

// Lines that are asked for in passing: each turn of kTurnColumns those of the
// next `step` bytes.
struct AskedLines {
  const std::byte* from;
  int64_t step;
};

// Decoded columns of a tile and what they are multiplied with.
struct WideArgs {
  const float* w;  // [column][16 rows]
  const float* x;  // [column][token]
  int64_t x_stride;
  int64_t columns;
  float* sums;  // [token][16 rows], in and out
  AskedLines asked;
};

template <int kTokens>
__attribute__((always_inline)) inline void AddColumn(const float* w,
                                                     const float* x,
                                                     Two256 (&sums)[kTokens]) {
  const Two256 weights = {_mm256_load_ps(w), _mm256_load_ps(w + 8)};
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    FusedStep(sums[t], weights, _mm256_broadcast_ss(x + t));
  }
}

// sums[t] = fma(w[c], x[c][t], sums[t]), columns ascending.
template <int kTokens>
void AddWide(const WideArgs& args) {
  Two256 sums[kTokens];
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = {_mm256_load_ps(args.sums + t * kTileRows),
               _mm256_load_ps(args.sums + t * kTileRows + 8)};
  }
  const float* w = args.w;
  const float* x = args.x;
  const std::byte* asked = args.asked.from;
  int64_t column = 0;
  for (; column + kTurnColumns <= args.columns; column += kTurnColumns) {
    PrefetchLines(asked, asked + args.asked.step);
    asked += args.asked.step;
#pragma GCC unroll 4
    for (int i = 0; i < kTurnColumns; ++i) {
      AddColumn(w, x, sums);
      w += kTileRows;
      x += args.x_stride;
    }
  }
  for (; column < args.columns; ++column) {
    AddColumn(w, x, sums);
    w += kTileRows;
    x += args.x_stride;
  }
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    StoreColumn(sums[t], args.sums + t * kTileRows);
  }
}

// What decoders of ExpandedWalk have in common that write columns as floats.
// The tiles' decoded columns, 16 KiB, and a panel's activations share the
// first-level cache.
template <int64_t kNumTiles, int64_t kNumColumns>
struct WideDecoder {
  using Rows = Rows256;
  static constexpr int64_t kTiles = kNumTiles;
  static constexpr int64_t kColumns = kNumColumns;
  static constexpr int64_t kBytes = kColumns * kTileRows * 4;
  // Each tile's first slice asks for one of the places.
  static_assert(kTiles <= AheadOfWeights::kPlaces);
  static constexpr int64_t kStepColumns = kTurnColumns;
  static bool Asks() { return true; }
  static int64_t PartsAhead(int64_t, int64_t) { return 1; }
  static AskedLines AheadOfTile(const ExpandedArgs& args, int64_t tile) {
    return {args.ahead.from + tile * args.ahead.apart, args.ahead.step};
  }
  static void Finish() {}
};

// `columns` columns of a tile that lie decoded as f32 against `tokens` tokens,
// in slices of nearly equal size.
inline void AddWideTile(WideArgs args, int64_t tokens) {
  using AddFn = void (*)(const WideArgs& args);
  static constexpr AddFn kAdd[kWideTokens] = {
      AddWide<1>, AddWide<2>, AddWide<3>, AddWide<4>, AddWide<5>, AddWide<6>};
  const int64_t slices = (tokens + kWideTokens - 1) / kWideTokens;
  int64_t begin = 0;
  for (int64_t slice = 1; slice <= slices; ++slice) {
    const int64_t end = slice * tokens / slices;
    kAdd[end - begin - 1](args);
    args.asked = {};
    args.x += end - begin;
    args.sums += (end - begin) * kTileRows;
    begin = end;
  }
}

// Of decoders that take f32 activations.
struct WideF32Decoder : WideDecoder<4, 64> {
  static constexpr ActivationForm kForm = ActivationForm::kF32;
  static int64_t Offset(int64_t column, int64_t tokens) {
    return column * tokens * static_cast<int64_t>(sizeof(float));
  }
  static int64_t Add(const ExpandedArgs& args) {
    for (int64_t tile = 0; tile < args.num_tiles; ++tile) {
      AddWideTile({.w = FloatsOf(args.weights + tile * kBytes),
                   .x = FloatsOf(args.activations),
                   .x_stride = args.tokens,
                   .columns = args.columns,
                   .sums = args.sums + tile * kPanelTokens * kTileRows,
                   .asked = AheadOfTile(args, tile)},
                  args.tokens);
    }
    return args.ahead.bytes;
  }
};

// Of decoders that take pairs of bf16: the odd column comes before the even
// one. An odd last column has zeros beside it.
template <int64_t kNumTiles = 4, int64_t kNumColumns = 64>
struct WidePairsDecoder : WideDecoder<kNumTiles, kNumColumns> {
  using Base = WideDecoder<kNumTiles, kNumColumns>;
  static constexpr ActivationForm kForm = ActivationForm::kBf16;

  static int64_t Offset(int64_t column, int64_t tokens) {
    return column / 2 * tokens * 4;
  }
  static int64_t Add(const ExpandedArgs& args) {
    SplitPanel panel(args);
    for (int64_t tile = 0; tile < args.num_tiles; ++tile) {
      panel.AddTile(args.weights + tile * Base::kBytes,
                    Base::AheadOfTile(args, tile),
                    args.sums + tile * kPanelTokens * kTileRows);
    }
    return args.ahead.bytes;
  }

 protected:
  // A panel's pairs, taken apart once for all tiles.
  class SplitPanel {
   public:
    explicit SplitPanel(const ExpandedArgs& args)
        : tokens_(args.tokens), pairs_((args.columns + 1) / 2) {
      const float* from = FloatsOf(args.activations);
      for (int64_t pair = 0; pair < pairs_; ++pair) {
        float* const odd = x_ + 2 * pair * kPanelTokens;
        SplitPairs(from + pair * tokens_, tokens_, odd, odd + kPanelTokens);
      }
    }
    void AddTile(const std::byte* weights, const AskedLines& asked,
                 float* sums) const {
      AddWideTile({.w = FloatsOf(weights),
                   .x = x_,
                   .x_stride = kPanelTokens,
                   .columns = 2 * pairs_,
                   .sums = sums,
                   .asked = asked},
                  tokens_);
    }

   private:
    int64_t tokens_;
    int64_t pairs_;
    alignas(64) float x_[kNumColumns * kPanelTokens];  // [column][token]
  };
};

// Tokens from which on weights are decoded before they are multiplied.
constexpr int64_t kFewestExpanded = 4;

}  // namespace
}  // namespace millrace::kernels
