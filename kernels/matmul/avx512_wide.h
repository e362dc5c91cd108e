#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "kernels/matmul/avx512_expanded_walk.h"

// Products in single precision for many tokens with AVX-512. Four tiles by six
// tokens need ten loads for twenty-four fused steps: where another thread
// shares the core, 0.81 of its peak against 0.75 with two tiles by eight tokens
// and seventeen loads for sixteen steps with one tile by sixteen. See
// tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int64_t kWideTiles = 4;   // side by side, at most
constexpr int64_t kWideTokens = 6;  // at a time

// Decoded columns of tiles and what they are multiplied with.
struct WideArgs {
  const float* w;  // [tile][column][16 rows]
  int64_t w_tile;  // floats from tile to tile
  const float* x;  // [column][token]
  int64_t x_stride;
  int64_t columns;
  const float* next_x;  // asked for in passing, a line a column
  float* sums;          // [tile][kPanelTokens][16 rows]
};

// sums[i][t] = fma(w[i][c], x[c][t], sums[i][t]), columns ascending.
template <int kTiles, int kTokens>
void AddWide(const WideArgs& args) {
  constexpr int64_t kSums = kPanelTokens * kTileRows;
  __m512 acc[kTiles][kTokens];
#pragma GCC unroll 4
  for (int i = 0; i < kTiles; ++i) {
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
      acc[i][t] = _mm512_load_ps(args.sums + i * kSums + t * kTileRows);
    }
  }
  const float* w = args.w;
  const float* x = args.x;
  const float* next = args.next_x;
  for (int64_t column = 0; column < args.columns; ++column) {
    __builtin_prefetch(next);
    next += 16;
    __m512 weights[kTiles];
#pragma GCC unroll 4
    for (int i = 0; i < kTiles; ++i) {
      weights[i] = _mm512_load_ps(w + i * args.w_tile);
    }
#pragma GCC unroll 6
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
#pragma GCC unroll 6
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
      AddWide<kTiles, 4>, AddWide<kTiles, 5>, AddWide<kTiles, 6>};
  return kAdd[tokens - 1];
}

// All tokens of a panel against tiles side by side.
inline void AddWideTiles(const WideArgs& args, int64_t num_tiles,
                         int64_t tokens) {
  static constexpr AddWideFn (*kChoose[kWideTiles])(int64_t) = {
      ChooseWide<1>, ChooseWide<2>, ChooseWide<3>, ChooseWide<4>};
  for (int64_t t = 0; t < tokens; t += kWideTokens) {
    WideArgs part = args;
    part.x += t;
    part.sums += t * kTileRows;
    kChoose[num_tiles - 1](std::min(tokens - t, kWideTokens))(part);
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
       .next_x = static_cast<const float*>(
           static_cast<const void*>(args.next_activations)),
       .sums = args.sums},
      args.num_tiles, args.tokens);
}

// With fewer tokens BF16 tiles are not decoded before they are multiplied.
constexpr int64_t kFewestWide = 5;

}  // namespace
}  // namespace millrace::kernels
