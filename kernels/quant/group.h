#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/tile_layout.h"
#include "kernels/quant/weight_format.h"

namespace millrace::kernels {

// Thirty-two elements of one row of a quantised matrix, as a checkpoint holds
// them: nothing is rounded on the way into a tile and back.
struct GroupCodes {
  uint8_t code[kGroup];  // unsigned; Q8_0: two's complement
  uint16_t d;            // f16: scale of the block or super-block
  uint16_t m;            // f16: minimum (Q4_1, Q5_1) or its scale (Q4_K, Q5_K)
  uint8_t scale[2];      // Q4_K, Q5_K: scale, minimum; Q6_K: i8 of both halves
};

// What products and look-ups need of a group; all exact.
struct GroupValues {
  int8_t value[kGroup];
  float w[2];  // scale of each half of 16
  float wm;    // minimum: element = w * value - wm; 0 where there is none
};

// Group `group` of a stored row (any alignment).
GroupCodes ReadStoredGroup(WeightFormat format, const std::byte* stored,
                           int64_t group);

// Row `row` of group `group` of a tile of `cols` columns. Writing expects the
// tile zeroed before.
GroupCodes ReadTileGroup(WeightFormat format, const std::byte* tile,
                         int64_t cols, int row, int64_t group);
void WriteTileGroup(WeightFormat format, std::byte* tile, int64_t cols, int row,
                    int64_t group, const GroupCodes& codes);

GroupValues ValuesOf(WeightFormat format, const GroupCodes& codes);

// Elements as f32, by the rule for w of exact products.
void DecodeGroup(WeightFormat format, const GroupCodes& codes, float* out);

}  // namespace millrace::kernels
