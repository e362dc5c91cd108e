#pragma once

#include <array>
#include <cstdint>

#include "kernels/quant/weight_format.h"

namespace millrace::kernels {

// Elements of the inner dimension that share one integer dot product.
inline constexpr int kGroup = 32;

// How the value of a group's dot product is formed (README.md, products).
enum class ProductRule : uint8_t { kOneScale, kScaleAndMinimum, kTwoHalves };

// Where the groups of a quantised tile lie. A record holds `groups_per_record`
// groups: first their scales, then the codes of each group.
struct TileLayout {
  int32_t code_bits;          // 4, 5, 6 or 8
  int32_t zero;               // value = code - zero
  int32_t groups_per_record;  // 1, 2, or 8 (a super-block)
  int32_t scale_bytes;        // of a record
  int32_t code_bytes;         // of a group
  int32_t front_bytes;        // per record, before the first one (Q6_K: d)
  ProductRule rule;
};

// Bytes of the codes of one group: 4 registers of nibbles, then the planes of
// the fifth and sixth bit; or 8 registers of bytes.
constexpr int32_t CodeBytes(int32_t code_bits) { return 16 * 4 * code_bits; }

constexpr TileLayout MakeLayout(int32_t code_bits, int32_t zero,
                                int32_t groups_per_record, int32_t scale_bytes,
                                int32_t front_bytes, ProductRule rule) {
  return {
      code_bits,   zero, groups_per_record, scale_bytes, CodeBytes(code_bits),
      front_bytes, rule};
}

// Indexed by format from kQ4_0 on. Q8_0 holds signed codes: zero is 0.
inline constexpr int kFirstQuantised = static_cast<int>(WeightFormat::kQ4_0);
inline constexpr std::array<TileLayout, kNumWeightFormats - kFirstQuantised>
    kTileLayouts = {{
        MakeLayout(4, 8, 2, 64, 0, ProductRule::kOneScale),
        MakeLayout(4, 0, 1, 64, 0, ProductRule::kScaleAndMinimum),
        MakeLayout(5, 16, 2, 64, 0, ProductRule::kOneScale),
        MakeLayout(5, 0, 1, 64, 0, ProductRule::kScaleAndMinimum),
        MakeLayout(8, 0, 2, 64, 0, ProductRule::kOneScale),
        MakeLayout(4, 0, 8, 256, 0, ProductRule::kScaleAndMinimum),
        MakeLayout(5, 0, 8, 256, 0, ProductRule::kScaleAndMinimum),
        MakeLayout(6, 32, 8, 256, 32, ProductRule::kTwoHalves),
    }};

constexpr bool IsQuantised(WeightFormat format) {
  return static_cast<int>(format) >= kFirstQuantised &&
         format != WeightFormat::kFp8;
}

// IsQuantised(format).
constexpr const TileLayout& LayoutOf(WeightFormat format) {
  return kTileLayouts[static_cast<size_t>(static_cast<int>(format) -
                                          kFirstQuantised)];
}

constexpr int64_t RecordBytes(const TileLayout& layout) {
  return layout.scale_bytes + layout.groups_per_record * layout.code_bytes;
}

// Bytes in front of the first record, a multiple of 64.
constexpr int64_t FrontBytes(const TileLayout& layout, int64_t cols) {
  const int64_t records = cols / (kGroup * layout.groups_per_record);
  return (records * layout.front_bytes + 63) / 64 * 64;
}

}  // namespace millrace::kernels
