#pragma once

#include <array>
#include <cstdint>

#include "kernels/quant/weight_format.h"

namespace millrace::kernels {

// Elements of the inner dimension that share one integer dot product.
inline constexpr int kGroup = 32;

// How the value of a group's dot product is formed (README.md, products).
enum class ProductRule : uint8_t {
  kOneScale,
  kScaleAndMinimum,
  kTwoHalves,
  kTwoHalvesAndMinima,
};

// What a code stands for, before the scale.
enum class CodeValue : uint8_t {
  kFromZero,  // code - zero
  kSigned,    // the byte as two's complement
  kIq4Nl,     // tables of 16, code_tables.h
  kE2m1,
};

// Type of the scales of a block or super-block and of what is added to them.
enum class ScaleType : uint8_t { kF16, kBf16, kE8m0 };

// What the second number of a block says about its minimum: an element is
// w * value - minimum.
enum class Minimum : uint8_t {
  kNone,
  kNegated,    // it is -minimum: Q4_1, Q5_1, MLX
  kZeroPoint,  // minimum = scale * it: INT4 with zero points
  kScaled,     // minimum = it * that of the sub-block: Q2_K, Q4_K, Q5_K
};

// Two small integers for each group of a super-block: scale and minimum of the
// group, or scales of its halves.
enum class SubScales : uint8_t {
  kNone,
  kSixBits,        // [group][2][16 rows], packed: Q4_K, Q5_K; Q3_K: less 32
  kSignedBytes,    // [group][16 rows][2]: Q6_K
  kNibblesOfBoth,  // the same, scale low and minimum high: Q2_K
};

// Where the groups of a quantised tile lie and what they mean. A record holds
// `groups_per_record` groups: first their scales, then the codes of each group.
struct TileLayout {
  int32_t code_bits = 0;          // 2, 3, 4, 5, 6 or 8
  int32_t zero = 0;               // of CodeValue::kFromZero
  int32_t groups_per_record = 0;  // 1, 2, 4, or 8 (a super-block)
  int32_t scale_bytes = 0;        // of a record
  int32_t front_bytes = 0;  // per record, before the first one (f16 d[16])
  ProductRule rule = ProductRule::kOneScale;
  CodeValue value = CodeValue::kFromZero;
  ScaleType scale = ScaleType::kF16;
  Minimum minimum = Minimum::kNone;
  SubScales sub_scales = SubScales::kNone;
};

// A scale for each group of 32.
constexpr TileLayout ScaledLayout(int32_t code_bits, int32_t zero,
                                  ScaleType scale = ScaleType::kF16,
                                  CodeValue value = CodeValue::kFromZero) {
  return {.code_bits = code_bits,
          .zero = zero,
          .groups_per_record = scale == ScaleType::kE8m0 ? 4 : 2,
          .scale_bytes = 64,
          .value = value,
          .scale = scale};
}

// A scale and a second number for each group of 32.
constexpr TileLayout AffineLayout(int32_t code_bits, Minimum minimum,
                                  ScaleType scale = ScaleType::kF16) {
  return {.code_bits = code_bits,
          .groups_per_record = 1,
          .scale_bytes = 64,
          .rule = ProductRule::kScaleAndMinimum,
          .scale = scale,
          .minimum = minimum};
}

// Super-blocks of 256 whose f16 d, dmin and sub-scales stand in the record.
constexpr TileLayout MinimaLayout(int32_t code_bits, ProductRule rule,
                                  SubScales sub_scales, int32_t scale_bytes) {
  return {.code_bits = code_bits,
          .groups_per_record = 8,
          .scale_bytes = scale_bytes,
          .rule = rule,
          .minimum = Minimum::kScaled,
          .sub_scales = sub_scales};
}

// Super-blocks of 256 whose f16 d stand in front of all records.
constexpr TileLayout HalvesLayout(int32_t code_bits, int32_t zero,
                                  SubScales sub_scales, int32_t scale_bytes) {
  return {.code_bits = code_bits,
          .zero = zero,
          .groups_per_record = 8,
          .scale_bytes = scale_bytes,
          .front_bytes = 32,
          .rule = ProductRule::kTwoHalves,
          .sub_scales = sub_scales};
}

// Indexed by format from kQ4_0 on.
inline constexpr int kFirstQuantised = static_cast<int>(WeightFormat::kQ4_0);
inline constexpr std::array<TileLayout, kNumWeightFormats - kFirstQuantised>
    kTileLayouts = {{
        ScaledLayout(4, 8),                                       // Q4_0
        AffineLayout(4, Minimum::kNegated),                       // Q4_1
        ScaledLayout(5, 16),                                      // Q5_0
        AffineLayout(5, Minimum::kNegated),                       // Q5_1
        ScaledLayout(8, 0, ScaleType::kF16, CodeValue::kSigned),  // Q8_0
        MinimaLayout(4, ProductRule::kScaleAndMinimum, SubScales::kSixBits,
                     256),  // Q4_K
        MinimaLayout(5, ProductRule::kScaleAndMinimum, SubScales::kSixBits,
                     256),                                  // Q5_K
        HalvesLayout(6, 32, SubScales::kSignedBytes, 256),  // Q6_K
        MinimaLayout(2, ProductRule::kTwoHalvesAndMinima,
                     SubScales::kNibblesOfBoth, 320),            // Q2_K
        HalvesLayout(3, 4, SubScales::kSixBits, 192),            // Q3_K
        ScaledLayout(4, 0, ScaleType::kF16, CodeValue::kIq4Nl),  // IQ4_NL
        ScaledLayout(4, 0, ScaleType::kE8m0, CodeValue::kE2m1),  // MXFP4
        ScaledLayout(4, 8, ScaleType::kBf16),                    // INT4
        ScaledLayout(4, 8, ScaleType::kF16),
        AffineLayout(4, Minimum::kZeroPoint, ScaleType::kBf16),
        AffineLayout(4, Minimum::kZeroPoint, ScaleType::kF16),
        AffineLayout(4, Minimum::kNegated, ScaleType::kBf16),  // MLX
        AffineLayout(4, Minimum::kNegated, ScaleType::kF16),
        AffineLayout(8, Minimum::kNegated, ScaleType::kBf16),
        AffineLayout(8, Minimum::kNegated, ScaleType::kF16),
    }};

constexpr bool IsQuantised(WeightFormat format) {
  return static_cast<int>(format) >= kFirstQuantised;
}

// IsQuantised(format).
constexpr const TileLayout& LayoutOf(WeightFormat format) {
  return kTileLayouts[static_cast<size_t>(static_cast<int>(format) -
                                          kFirstQuantised)];
}

// Two scales for a group, one for each half of 16.
constexpr bool HasHalves(const TileLayout& layout) {
  return layout.rule == ProductRule::kTwoHalves ||
         layout.rule == ProductRule::kTwoHalvesAndMinima;
}

// Bytes of the codes of one group: registers of nibbles, then planes of the
// other bits; or 8 registers of bytes.
constexpr int32_t CodeBytes(const TileLayout& layout) {
  return 16 * 4 * layout.code_bits;
}

constexpr int64_t RecordBytes(const TileLayout& layout) {
  return layout.scale_bytes + layout.groups_per_record * CodeBytes(layout);
}

// Bytes in front of the first record, a multiple of 64.
constexpr int64_t FrontBytes(const TileLayout& layout, int64_t cols) {
  const int64_t records = cols / (kGroup * layout.groups_per_record);
  return (records * layout.front_bytes + 63) / 64 * 64;
}

}  // namespace millrace::kernels
