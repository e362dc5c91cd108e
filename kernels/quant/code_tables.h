#pragma once

#include <cstdint>

#include "kernels/quant/tile_layout.h"

// Values of four-bit codes that are no numbers themselves. No functions of the
// standard library: files for one instruction set include this.
namespace millrace::kernels {

inline constexpr int kTableCodes = 16;

inline constexpr int8_t kIq4NlValues[kTableCodes] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Of E2M1, doubled; the scale is halved instead. -0 counts as 0.
inline constexpr int8_t kE2m1Values[kTableCodes] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Null where codes are numbers.
constexpr const int8_t* TableOf(CodeValue value) {
  return value == CodeValue::kIq4Nl  ? kIq4NlValues
         : value == CodeValue::kE2m1 ? kE2m1Values
                                     : nullptr;
}

}  // namespace millrace::kernels
