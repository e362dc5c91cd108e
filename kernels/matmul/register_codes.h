#pragma once

#include <cstdint>

#include "kernels/quant/code_tables.h"
#include "kernels/quant/tile_layout.h"

// How codes stand in the bytes of registers, see tile_walk.h for the unnamed
// namespace.
namespace millrace::kernels {
namespace {

struct CodeTableBytes {
  alignas(16) int8_t bytes[kTableCodes];
};

// Values of a table plus `zero`, modulo 256.
constexpr CodeTableBytes ShiftedTable(const int8_t* values, int zero) {
  CodeTableBytes table = {};
  for (int code = 0; values != nullptr && code < kTableCodes; ++code) {
    const int byte = values[code] + zero;
    table.bytes[code] = static_cast<int8_t>(byte > 127 ? byte - 256 : byte);
  }
  return table;
}

constexpr int Log2(int power) {
  int shift = 0;
  while (1 << shift < power) {
    ++shift;
  }
  return shift;
}

// For products added in pairs of 16 bits (vpmaddubsw): bytes are unsigned where
// these fit, otherwise signed, their magnitudes being multiplied. value = byte
// - kZero.
template <WeightFormat kFormat>
struct PairCodes {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kHasTable = TableOf(kLayout.value) != nullptr;
  static constexpr bool kSigned =
      kLayout.code_bits == 8 || kLayout.value == CodeValue::kIq4Nl;
  // Unsigned bytes become signed ones.
  static constexpr bool kFlipsSign =
      kSigned && kLayout.value == CodeValue::kFromZero;
  static constexpr int kZero = kLayout.value == CodeValue::kE2m1 ? 16
                               : kFlipsSign                      ? -128
                                                                 : kLayout.zero;
  static constexpr int kShift = Log2(kZero < 0 ? -kZero : kZero);
  static_assert(kZero == 0 || kZero == 1 << kShift || kZero == -(1 << kShift));
  static constexpr CodeTableBytes kTable =
      ShiftedTable(TableOf(kLayout.value), kZero);
  static constexpr int kLargest = kSigned ? 128
                                  : kLayout.value == CodeValue::kE2m1
                                      ? 16 + 12
                                      : (1 << kLayout.code_bits) - 1;

  // Quads whose products fit 16 bits together, at most those of a part with its
  // own scale.
  static constexpr int QuadsIn16Bits() {
    int quads = HasHalves(kLayout) ? 4 : 8;
    while (quads * 2 * kLargest * 127 > 32767) {
      quads /= 2;
    }
    return quads;
  }
};

// For products added in 32 bits (vpdpbusd): all bytes are unsigned.
template <WeightFormat kFormat>
struct DotCodes {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kHasTable = TableOf(kLayout.value) != nullptr;
  static constexpr bool kFlipsSign = kLayout.value == CodeValue::kSigned;
  static constexpr int kZero = kLayout.value == CodeValue::kE2m1 ? 16
                               : kHasTable || kFlipsSign         ? 128
                                                                 : kLayout.zero;
  static constexpr int kShift = Log2(kZero);
  static_assert(kZero == 0 || kZero == 1 << kShift);
  static constexpr CodeTableBytes kTable =
      ShiftedTable(TableOf(kLayout.value), kZero);
};

// For products of signed bytes (sdot, smull).
template <WeightFormat kFormat>
struct SignedCodes {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kHasTable = TableOf(kLayout.value) != nullptr;
  // Codes of 8 bits, 0 to 255, become signed.
  static constexpr bool kFlipsSign =
      kLayout.code_bits == 8 && kLayout.value == CodeValue::kFromZero;
  static constexpr int kZero = kFlipsSign ? -128 : kLayout.zero;
  static constexpr int kShift = Log2(kZero < 0 ? -kZero : kZero);
  static_assert(kZero == 0 || kZero == 1 << kShift || kZero == -(1 << kShift));
  static constexpr CodeTableBytes kTable =
      ShiftedTable(TableOf(kLayout.value), kZero);
  static constexpr int kLargest = kLayout.value == CodeValue::kE2m1 ? 12
                                  : kHasTable || kLayout.code_bits == 8
                                      ? 128
                                      : (1 << kLayout.code_bits) - 1;
};

}  // namespace
}  // namespace millrace::kernels
