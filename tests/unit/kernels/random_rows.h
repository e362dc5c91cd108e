#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/quant/weight_format.h"

namespace millrace::kernels {

// How wild generated numbers are. Codes are always any bits.
enum class Spread : uint8_t {
  kOrdinary,  // magnitudes around 1, as in a model
  kFinite,    // any finite number, subnormals and zeros among them
  kAny,       // infinities and NaN too, where the format takes them
};

uint16_t RandomHalf(Spread spread, std::mt19937& random);
uint16_t RandomBf16(Spread spread, std::mt19937& random);
float RandomFloat(Spread spread, std::mt19937& random);

// Bytes [begin, end) of a block that hold floating-point numbers (a scale and
// what is added to it); the others are codes and integers.
struct FloatBytes {
  int64_t begin;
  int64_t end;
};
FloatBytes FloatBytesOf(WeightFormat format);

// A stored row; scales and minima are drawn as `spread` says, but those of FP8
// are always finite.
std::vector<std::byte> RandomRow(WeightFormat format, int64_t cols,
                                 Spread spread, std::mt19937& random);

// Several, one behind the other. FP8: with the scales of the first, as rows of
// one tile have.
std::vector<std::byte> RandomRows(WeightFormat format, int64_t num_rows,
                                  int64_t cols, Spread spread,
                                  std::mt19937& random);

}  // namespace millrace::kernels
