#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/tile_layout.h"

// Quantised groups decoded for many tokens: 8 quads of bytes, then the scales
// as f32 [16 rows] each: w0, and as the rule asks w1 or wm0; for two halves and
// minima w0, w1, wm0, wm1. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int64_t kExpandedCodeBytes = 512;
constexpr int64_t kVectorBytes = 64;

constexpr int NumScales(ProductRule rule) {
  return rule == ProductRule::kOneScale             ? 1
         : rule == ProductRule::kTwoHalvesAndMinima ? 4
                                                    : 2;
}
constexpr int64_t ExpandedGroupBytes(ProductRule rule) {
  return kExpandedCodeBytes + NumScales(rule) * kVectorBytes;
}

}  // namespace
}  // namespace millrace::kernels
