#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "kernels/matmul/avx512_expanded_walk.h"

// Products in single precision for many tokens with AVX-512. Two tiles by eight
// tokens need ten loads for sixteen fused steps; one tile by sixteen tokens
// needs seventeen, which is as many as the processor can do. See tile_walk.h
// for the unnamed namespace.
namespace millrace::kernels {
namespace {

// Tokens that are taken with four tiles, and with two or one.
constexpr int64_t kFewTokens = 4;
constexpr int64_t kWideTokens = 8;

// Decoded columns of tiles and what they are multiplied with.
struct WideArgs {
  const float* w;  // [tile][column][16 rows]
  int64_t w_tile;  // floats from tile to tile
  const float* x;  // [column][token]
  int64_t x_stride;
  int64_t columns;
  float* sums;  // [tile][kPanelTokens][16 rows]
};

// sums[i][t] = fma(w[i][c], x[c][t], sums[i][t]), columns ascending.
template <int kTiles, int kTokens>
void AddWide(const WideArgs& args) {
  constexpr int64_t kSums = kPanelTokens * kTileRows;
  __m512 acc[kTiles][kTokens];
#pragma GCC unroll 4
  for (int i = 0; i < kTiles; ++i) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      acc[i][t] = _mm512_load_ps(args.sums + i * kSums + t * kTileRows);
    }
  }
  const float* w = args.w;
  const float* x = args.x;
  for (int64_t column = 0; column < args.columns; ++column) {
    __m512 weights[kTiles];
#pragma GCC unroll 4
    for (int i = 0; i < kTiles; ++i) {
      weights[i] = _mm512_load_ps(w + i * args.w_tile);
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      const __m512 value = _mm512_set1_ps(x[t]);
#pragma GCC unroll 4
      for (int i = 0; i < kTiles; ++i) {
        acc[i][t] = _mm512_fmadd_ps(weights[i], value, acc[i][t]);
      }
    }
    w += kTileRows;
    x += args.x_stride;
  }
#pragma GCC unroll 4
  for (int i = 0; i < kTiles; ++i) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      _mm512_store_ps(args.sums + i * kSums + t * kTileRows, acc[i][t]);
    }
  }
}

using AddWideFn = void (*)(const WideArgs& args);

template <int kTiles>
AddWideFn ChooseWide(int64_t tokens) {
  static constexpr AddWideFn kAdd[kWideTokens] = {
      AddWide<kTiles, 1>, AddWide<kTiles, 2>, AddWide<kTiles, 3>,
      AddWide<kTiles, 4>, AddWide<kTiles, 5>, AddWide<kTiles, 6>,
      AddWide<kTiles, 7>, AddWide<kTiles, 8>};
  return kAdd[tokens - 1];
}

inline AddWideFn ChooseFour(int64_t tokens) {
  static constexpr AddWideFn kAdd[kFewTokens] = {AddWide<4, 1>, AddWide<4, 2>,
                                                 AddWide<4, 3>, AddWide<4, 4>};
  return kAdd[tokens - 1];
}

// All tokens of a panel against tiles side by side.
inline void AddWideTiles(const WideArgs& args, int64_t num_tiles,
                         int64_t tokens) {
  if (num_tiles == 4 && tokens <= kFewTokens) {
    ChooseFour(tokens)(args);
    return;
  }
  for (int64_t t = 0; t < tokens; t += kWideTokens) {
    const int64_t num = std::min(tokens - t, kWideTokens);
    for (int64_t tile = 0; tile < num_tiles;) {
      const bool two = num_tiles - tile >= 2;
      WideArgs part = args;
      part.w += tile * args.w_tile;
      part.x += t;
      part.sums += (tile * kPanelTokens + t) * kTileRows;
      (two ? ChooseWide<2>(num) : ChooseWide<1>(num))(part);
      tile += two ? 2 : 1;
    }
  }
}

// The panel of `args` against columns that lie decoded as f32.
inline void AddWidePanel(const ExpandedArgs& args, int64_t tile_bytes,
                         const float* x, int64_t x_stride, int64_t columns) {
  AddWideTiles(
      {.w = static_cast<const float*>(static_cast<const void*>(args.weights)),
       .w_tile = tile_bytes / static_cast<int64_t>(sizeof(float)),
       .x = x,
       .x_stride = x_stride,
       .columns = columns,
       .sums = args.sums},
      args.num_tiles, args.tokens);
}

// With fewer tokens BF16 tiles are not decoded before they are multiplied.
constexpr int64_t kFewestWide = 5;

}  // namespace
}  // namespace millrace::kernels
