#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/quant/tile_layout.h"
#include "kernels/quant/weight_format.h"

namespace millrace::kernels {

// Thirty-two elements of one row of a quantised matrix, as a checkpoint holds
// them: nothing is rounded on the way into a tile and back.
struct GroupCodes {
  uint8_t code[kGroup];  // unsigned; Q8_0: two's complement
  uint16_t d;            // scale of the block or super-block; E8M0: 8 bits
  uint16_t m;            // second number of the block, see Minimum
  uint8_t scale[2];      // sub-scales as stored, see SubScales
};

// What products and look-ups need of a group; all exact.
struct GroupValues {
  int16_t value[kGroup];
  float w[2];   // scale of each half of 16
  float wm[2];  // minima: element = w * value - wm; 0 where there are none
};

// Group `group` of as many stored rows (any alignment) as `out` has elements.
// The format is one of groups, as for LayoutOf.
void ReadStoredGroups(WeightFormat format, const std::byte* rows,
                      int64_t row_stride, int64_t group,
                      std::span<GroupCodes> out);

// Row `row` of group `group` of a tile of `cols` columns.
GroupCodes ReadTileGroup(WeightFormat format, const std::byte* tile,
                         int64_t cols, int row, int64_t group);
// The first `rows.size()` <= 16 rows of a group, the others being zero. Expects
// the tile zeroed before.
void WriteTileGroup(WeightFormat format, std::byte* tile, int64_t cols,
                    int64_t group, std::span<const GroupCodes> rows);

GroupValues ValuesOf(WeightFormat format, const GroupCodes& codes);

// Elements as f32, by the rule for w of exact products.
void DecodeGroup(WeightFormat format, const GroupCodes& codes, float* out);

}  // namespace millrace::kernels
