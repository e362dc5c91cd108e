#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/asks_ahead.h"
#include "kernels/matmul/expanded_walk.h"
#include "kernels/matmul/rows_avx512.h"

// Products in single precision for many tokens with AVX-512. Four tiles by six
// tokens need ten loads for twenty-four fused steps: where another thread
// shares the core, 0.81 of its peak against 0.75 with two tiles by eight tokens
// and seventeen loads for sixteen steps with one tile by sixteen. See
// tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int64_t kWideTiles = 4;   // side by side, at most
constexpr int64_t kWideTokens = 6;  // at a time
constexpr int64_t kTurnColumns = 4;

// Lines that are asked for in passing: each turn kTurnColumns of them.
struct AskedLines {
  const std::byte* from;
  int64_t apart;  // bytes between those of a turn
  int64_t step;   // and from turn to turn
};

// Decoded columns of tiles and what they are multiplied with.
struct WideArgs {
  const float* w;  // [tile][column][16 rows]
  int64_t w_tile;  // floats from tile to tile
  const float* x;  // [column][token]
  int64_t x_stride;
  int64_t columns;
  AskedLines asked;
  float* sums;  // [tile][kPanelTokens][16 rows]
};

// acc[i][t] = fma(w[i], x[t], acc[i][t]) of one column.
template <int kTiles, int kTokens>
__attribute__((always_inline)) inline void AddColumn(
    const float* w, int64_t w_tile, const float* x,
    __m512 (&acc)[kTiles][kTokens]) {
  __m512 weights[kTiles];
#pragma GCC unroll 4
  for (int i = 0; i < kTiles; ++i) {
    weights[i] = _mm512_load_ps(w + i * w_tile);
  }
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    const __m512 value = _mm512_set1_ps(x[t]);
#pragma GCC unroll 4
    for (int i = 0; i < kTiles; ++i) {
      acc[i][t] = _mm512_fmadd_ps(weights[i], value, acc[i][t]);
    }
  }
}

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
  const std::byte* asked = args.asked.from;
  int64_t column = 0;
  for (; column + kTurnColumns <= args.columns; column += kTurnColumns) {
#pragma GCC unroll 4
    for (int i = 0; i < kTurnColumns; ++i) {
      __builtin_prefetch(asked + i * args.asked.apart);
      AddColumn(w, args.w_tile, x, acc);
      w += kTileRows;
      x += args.x_stride;
    }
    asked += args.asked.step;
  }
  for (; column < args.columns; ++column) {
    AddColumn(w, args.w_tile, x, acc);
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

// What decoders of ExpandedWalk have in common that write columns as f32.
struct WideDecoder {
  using Rows = Rows512;
  static constexpr int64_t kTiles = kWideTiles;
  static constexpr int64_t kColumns = 64;
  static constexpr int64_t kBytes = kColumns * kTileRows * 4;
  static constexpr int64_t kStepColumns = kTurnColumns;
  static bool Asks() { return AsksAhead(); }
  // The first parts of a panel have the other jobs.
  static int64_t PartsAhead(int64_t tokens, int64_t jobs) {
    const int64_t parts = (tokens + kWideTokens - 1) / kWideTokens - jobs;
    return parts > 0 ? parts : 0;
  }
  static void Finish() {}
};

// The panel of `args` against columns that lie decoded as f32. Each part of its
// tokens asks for something in passing: the next activations, the next sums,
// then weights, as PartsAhead has it. Returns how far ahead.
inline int64_t AddWidePanel(const ExpandedArgs& args, const float* x,
                            int64_t x_stride, int64_t columns) {
  static constexpr AddWideFn (*kChoose[kWideTiles])(int64_t) = {
      ChooseWide<1>, ChooseWide<2>, ChooseWide<3>, ChooseWide<4>};
  constexpr int64_t kLine = 64;
  constexpr int64_t kTurnBytes = kTurnColumns * kLine;
  WideArgs part = {
      .w = static_cast<const float*>(static_cast<const void*>(args.weights)),
      .w_tile = WideDecoder::kBytes / static_cast<int64_t>(sizeof(float)),
      .x = x,
      .x_stride = x_stride,
      .columns = columns,
      .asked = {},
      .sums = args.sums};
  const void* jobs[] = {args.next_activations, args.next_sums};
  int job = jobs[0] == nullptr ? 2 : 0;
  const std::byte* ahead = args.ahead.from;
  for (int64_t t = 0; t < args.tokens; t += kWideTokens) {
    if (job < 2 && jobs[job] != nullptr) {
      part.asked = {static_cast<const std::byte*>(jobs[job]), kLine,
                    kTurnBytes};
      ++job;
    } else {
      part.asked = {ahead, args.ahead.apart, args.ahead.step};
      ahead += args.ahead.bytes;
    }
    const int64_t left = args.tokens - t;
    kChoose[args.num_tiles - 1](left < kWideTokens ? left : kWideTokens)(part);
    part.x += kWideTokens;
    part.sums += kWideTokens * kTileRows;
  }
  return ahead - args.ahead.from;
}

// With fewer tokens BF16 tiles are not decoded before they are multiplied.
constexpr int64_t kFewestExpanded = 5;

}  // namespace
}  // namespace millrace::kernels
