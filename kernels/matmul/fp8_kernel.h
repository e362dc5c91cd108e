#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/tile_walk.h"
#include "kernels/quant/fp8_tile.h"

// Products of FP8 tiles whose codes become numbers on the way into the fused
// steps, with AVX2 and AVX-512; see tile_walk.h for why everything is in an
// unnamed namespace.
//
// A Source says how a quad of four columns is taken:
//   kForm                 kBf16: a pair of columns is one word of x; kF32
//   Sum, Quad             16 sums; the weights of two pairs of columns
//   Begin(total)          the sums that a block starts from
//   End(sum, scale, total)     a block's sums into the totals
//   Load(from, scale)     a quad, of numbers (times their scale where exact)
//   Add(sum, quad, pair, x, stride)    one pair of columns of one token;
//                         columns of f32 activations `stride` floats apart
//   AddEven(sum, quad, pair, x)        its first column alone, where f32
//                         activations end on it
namespace millrace::kernels {
namespace {

inline float Fp8ScaleAt(const std::byte* tile, int64_t column) {
  float scale;
  std::memcpy(&scale, tile + column / kFp8Block * 4, sizeof(scale));
  return scale;
}

inline int64_t Fp8ColumnsFrom(int64_t begin, int64_t cols) {
  return cols - begin < kFp8Block ? cols - begin : kFp8Block;
}

// One block of 128 columns, or what is left: of the tiles side by side, which
// have their codes at `codes`, for tokens at `x`.
template <typename Source, int kTokens, int kTiles>
__attribute__((always_inline)) inline void AddFp8Block(const PanelArgs& args,
                                                       int64_t begin,
                                                       const std::byte* codes,
                                                       const float* x) {
  constexpr bool kPairsOfX = Source::kForm == ActivationForm::kBf16;
  const int64_t stride = args.tokens;
  const int64_t pair_step = kPairsOfX ? stride : 2 * stride;
  const int64_t cols = Fp8ColumnsFrom(begin, args.cols);
  // An odd last column of words of two is paired with one of zeros.
  const int64_t pairs = kPairsOfX ? (cols + 1) / 2 : cols / 2;
  typename Source::Sum sums[kTiles][kTokens];
  float scale[kTiles];
#pragma GCC unroll 4
  for (int side = 0; side < kTiles; ++side) {
    scale[side] = Fp8ScaleAt(args.tile + side * args.tile_bytes, begin);
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      sums[side][t] =
          Source::Begin(args.sums + (side * kPanelTokens + t) * kTileRows);
    }
  }
  for (int64_t pair = 0; pair + 2 <= pairs; pair += 2) {
#pragma GCC unroll 4
    for (int side = 0; side < kTiles; ++side) {
      const auto quad =
          Source::Load(codes + side * args.tile_bytes, scale[side]);
#pragma GCC unroll 16
      for (int t = 0; t < kTokens; ++t) {
        Source::Add(sums[side][t], quad, 0, x + t, stride);
      }
#pragma GCC unroll 16
      for (int t = 0; t < kTokens; ++t) {
        Source::Add(sums[side][t], quad, 1, x + pair_step + t, stride);
      }
    }
    codes += 64;
    x += 2 * pair_step;
  }
  if (2 * pairs < cols || pairs % 2 != 0) {
#pragma GCC unroll 4
    for (int side = 0; side < kTiles; ++side) {
      const auto quad =
          Source::Load(codes + side * args.tile_bytes, scale[side]);
      const int last = static_cast<int>(pairs % 2);
#pragma GCC unroll 16
      for (int t = 0; t < kTokens; ++t) {
        if (last == 1) {
          Source::Add(sums[side][t], quad, 0, x + t, stride);
        }
        if (2 * pairs < cols) {
          Source::AddEven(sums[side][t], quad, last, x + last * pair_step + t);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int side = 0; side < kTiles; ++side) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      Source::End(sums[side][t], scale[side],
                  args.sums + (side * kPanelTokens + t) * kTileRows);
    }
  }
}

template <typename Source, int kTokens, int kTiles>
void Fp8Panel(const PanelArgs& args) {
  for (int side = 0; side < kTiles; ++side) {
    std::memset(args.sums + side * kPanelTokens * kTileRows, 0,
                sizeof(float) * kTokens * kTileRows);
  }
  const std::byte* codes = args.tile + Fp8CodesBegin(args.cols);
  const float* x =
      static_cast<const float*>(static_cast<const void*>(args.panel));
  constexpr int64_t kWordsOfX =
      Source::kForm == ActivationForm::kBf16 ? kFp8Block / 2 : kFp8Block;
  for (int64_t begin = 0; begin < args.cols; begin += kFp8Block) {
    AddFp8Block<Source, kTokens, kTiles>(args, begin, codes, x);
    codes += kFp8Block * kTileRows;
    x += kWordsOfX * args.tokens;
  }
}

}  // namespace
}  // namespace millrace::kernels
