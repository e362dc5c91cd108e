#include "kernels/quant/group.h"

#include <cmath>

#include "kernels/quant/half.h"

namespace millrace::kernels {

GroupValues ValuesOf(WeightFormat format, const GroupCodes& codes) {
  const TileLayout& layout = LayoutOf(format);
  GroupValues values = {};
  for (int k = 0; k < kGroup; ++k) {
    const int code = layout.code_bits == 8 ? static_cast<int8_t>(codes.code[k])
                                           : codes.code[k];
    values.value[k] = static_cast<int8_t>(code - layout.zero);
  }
  const float d = HalfToFloat(codes.d);
  const bool super_block = layout.groups_per_record == 8;
  switch (layout.rule) {
    case ProductRule::kOneScale:
      values.w[0] = values.w[1] = d;
      break;
    case ProductRule::kScaleAndMinimum:
      values.w[0] = super_block ? d * codes.scale[0] : d;
      values.w[1] = values.w[0];
      values.wm = super_block ? HalfToFloat(codes.m) * codes.scale[1]
                              : -HalfToFloat(codes.m);
      break;
    case ProductRule::kTwoHalves:
      values.w[0] = d * static_cast<int8_t>(codes.scale[0]);
      values.w[1] = d * static_cast<int8_t>(codes.scale[1]);
      break;
  }
  return values;
}

void DecodeGroup(WeightFormat format, const GroupCodes& codes, float* out) {
  const GroupValues values = ValuesOf(format, codes);
  const bool has_minimum =
      LayoutOf(format).rule == ProductRule::kScaleAndMinimum;
  for (int k = 0; k < kGroup; ++k) {
    const float w = values.w[k / (kGroup / 2)];
    out[k] = has_minimum ? std::fma(w, values.value[k], -values.wm)
                         : w * values.value[k];
  }
}

}  // namespace millrace::kernels
