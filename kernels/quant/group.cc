#include "kernels/quant/group.h"

#include <cmath>

#include "kernels/quant/code_tables.h"
#include "kernels/quant/half.h"

namespace millrace::kernels {
namespace {

float ScaleToFloat(ScaleType type, uint16_t bits) {
  switch (type) {
    case ScaleType::kF16:
      return HalfToFloat(bits);
    case ScaleType::kBf16:
      return Bf16ToFloat(bits);
    case ScaleType::kE8m0:
      break;
  }
  return E8m0ToHalfScale(static_cast<uint8_t>(bits));
}

void SetValues(const TileLayout& layout, const GroupCodes& codes,
               GroupValues& values) {
  const int8_t* table = TableOf(layout.value);
  for (int k = 0; k < kGroup; ++k) {
    const uint8_t code = codes.code[k];
    switch (layout.value) {
      case CodeValue::kFromZero:
        values.value[k] = static_cast<int16_t>(code - layout.zero);
        break;
      case CodeValue::kSigned:
        values.value[k] = static_cast<int8_t>(code);
        break;
      case CodeValue::kIq4Nl:
      case CodeValue::kE2m1:
        values.value[k] = table[code];
        break;
    }
  }
}

// Of half `half`, or of a whole group.
float ScaleOf(const TileLayout& layout, const GroupCodes& codes, int half) {
  const float d = ScaleToFloat(layout.scale, codes.d);
  const uint8_t sub = codes.scale[HasHalves(layout) ? half : 0];
  switch (layout.sub_scales) {
    case SubScales::kNone:
      break;
    case SubScales::kSixBits:
      return HasHalves(layout) ? d * (sub - 32) : d * sub;
    case SubScales::kSignedBytes:
      return d * static_cast<int8_t>(sub);
    case SubScales::kNibblesOfBoth:
      return d * (sub & 15);
  }
  return d;
}

float MinimumOf(const TileLayout& layout, const GroupCodes& codes, int half) {
  switch (layout.minimum) {
    case Minimum::kNone:
      return 0;
    case Minimum::kNegated:
      return -ScaleToFloat(layout.scale, codes.m);
    case Minimum::kZeroPoint:
      return ScaleToFloat(layout.scale, codes.d) *
             ScaleToFloat(layout.scale, codes.m);
    case Minimum::kScaled:
      break;
  }
  const int sub = layout.sub_scales == SubScales::kSixBits
                      ? codes.scale[1]
                      : codes.scale[half] >> 4;
  return ScaleToFloat(layout.scale, codes.m) * static_cast<float>(sub);
}

}  // namespace

GroupValues ValuesOf(WeightFormat format, const GroupCodes& codes) {
  const TileLayout& layout = LayoutOf(format);
  GroupValues values;
  SetValues(layout, codes, values);
  for (int half = 0; half < 2; ++half) {
    values.w[half] = ScaleOf(layout, codes, half);
    values.wm[half] = MinimumOf(layout, codes, half);
  }
  return values;
}

void DecodeGroup(WeightFormat format, const GroupCodes& codes, float* out) {
  const GroupValues values = ValuesOf(format, codes);
  const bool has_minimum = LayoutOf(format).minimum != Minimum::kNone;
  for (int k = 0; k < kGroup; ++k) {
    const int half = k / (kGroup / 2);
    const float w = values.w[half];
    out[k] = has_minimum ? std::fma(w, values.value[k], -values.wm[half])
                         : w * values.value[k];
  }
}

}  // namespace millrace::kernels
