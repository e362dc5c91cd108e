#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/prefetch.h"
#include "kernels/matmul/tile_walk.h"

// Products of unquantised tiles, for every instruction set; see tile_walk.h for
// why everything is in an unnamed namespace.
//
// A Source says how a step of columns is taken:
//   kFormat, kForm   the kernel it makes
//   kColumns         columns of one step: 1 or 2
//   kStepBytes       bytes of a step in a tile
//   Sum, Weights     16 sums; the weights of one step
//   Zero(), Keep(sum, to), Load(from)
//   Add(sum, weights, x, stride)      one step; x at the token's first column,
//                                     columns `stride` floats apart
//   AddLast(sum, weights, x)          the even column alone, where f32
//                                     activations end on it
namespace millrace::kernels {
namespace {

// kAheadBytes: how far ahead of a step its tile is asked for; 0: not at all.
template <typename Source, int kTokens, int kTiles, int kAheadBytes = 0>
void FloatPanel(const PanelArgs& args) {
  typename Source::Sum sums[kTiles][kTokens];
#pragma GCC unroll 4
  for (int side = 0; side < kTiles; ++side) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      sums[side][t] = Source::Zero();
    }
  }
  // Activations of bf16 pairs are one 32-bit word for two columns.
  constexpr bool kWholeSteps = Source::kForm == ActivationForm::kBf16;
  const int64_t stride = args.tokens;
  const int64_t step_floats = kWholeSteps ? stride : Source::kColumns * stride;
  const int64_t steps =
      kWholeSteps ? (args.cols + 1) / 2 : args.cols / Source::kColumns;
  const float* x =
      static_cast<const float*>(static_cast<const void*>(args.panel));
  const std::byte* from = args.tile;
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 4
    for (int side = 0; side < kTiles; ++side) {
      const std::byte* const at = from + side * args.tile_bytes;
      if constexpr (kAheadBytes != 0) {
        PrefetchLines(at + kAheadBytes, at + kAheadBytes + Source::kStepBytes);
      }
      const auto weights = Source::Load(at);
#pragma GCC unroll 16
      for (int t = 0; t < kTokens; ++t) {
        Source::Add(sums[side][t], weights, x + t, stride);
      }
    }
    from += Source::kStepBytes;
    x += step_floats;
  }
  if constexpr (!kWholeSteps && Source::kColumns == 2) {
    if (args.cols % 2 != 0) {
#pragma GCC unroll 4
      for (int side = 0; side < kTiles; ++side) {
        const auto weights = Source::Load(from + side * args.tile_bytes);
#pragma GCC unroll 16
        for (int t = 0; t < kTokens; ++t) {
          Source::AddLast(sums[side][t], weights, x + t);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int side = 0; side < kTiles; ++side) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      Source::Keep(sums[side][t],
                   args.sums + (side * kPanelTokens + t) * kTileRows);
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
