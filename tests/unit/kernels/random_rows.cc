#include "tests/unit/kernels/random_rows.h"

#include <bit>
#include <cmath>

#include "kernels/quant/half.h"

namespace millrace::kernels {
namespace {

// Bits of a number with `exponent_bits` and `fraction_bits`: any pattern that
// `spread` allows, zeros and the ends of the range more often than by chance.
uint32_t RandomBits(int exponent_bits, int fraction_bits, Spread spread,
                    std::mt19937& random) {
  const uint32_t top = (1u << exponent_bits) - 1;
  const uint32_t fraction = random() & ((1u << fraction_bits) - 1);
  const uint32_t sign = (random() & 1) << (exponent_bits + fraction_bits);
  uint32_t exponent = random() % top;
  switch (random() % 16) {
    case 0:
      return sign;
    case 1:
      exponent = 0;
      break;
    case 2:
      exponent = top - 1;
      break;
    case 3:
      if (spread == Spread::kAny && random() % 4 == 0) {
        return sign | top << fraction_bits | (random() & 1 ? 0 : fraction);
      }
      break;
    default:
      break;
  }
  return sign | exponent << fraction_bits | fraction;
}

float OrdinaryFloat(std::mt19937& random) {
  const float unit = static_cast<float>(random() % 65536) / 32768 - 1;
  return std::ldexp(unit, static_cast<int>(random() % 5) - 2);
}

void StoreScale(WeightFormat format, Spread spread, std::mt19937& random,
                std::byte* block) {
  const bool last = format == WeightFormat::kQ6_K;
  const bool has_minimum =
      format == WeightFormat::kQ4_1 || format == WeightFormat::kQ5_1 ||
      format == WeightFormat::kQ4_K || format == WeightFormat::kQ5_K;
  StoreBytes(RandomHalf(spread, random), block + (last ? 208 : 0));
  if (has_minimum) {
    StoreBytes(RandomHalf(spread, random), block + 2);
  }
}

}  // namespace

uint16_t RandomHalf(Spread spread, std::mt19937& random) {
  if (spread == Spread::kOrdinary) {
    // 2^-8 ... 2^-5
    const uint32_t bits = 0x1c00 + random() % 0x0c00;
    return static_cast<uint16_t>(bits | (random() & 1) << 15);
  }
  return static_cast<uint16_t>(RandomBits(5, 10, spread, random));
}

uint16_t RandomBf16(Spread spread, std::mt19937& random) {
  if (spread == Spread::kOrdinary) {
    return FloatToBf16(OrdinaryFloat(random));
  }
  return static_cast<uint16_t>(RandomBits(8, 7, spread, random));
}

float RandomFloat(Spread spread, std::mt19937& random) {
  if (spread == Spread::kOrdinary) {
    return OrdinaryFloat(random);
  }
  return std::bit_cast<float>(RandomBits(8, 23, spread, random));
}

std::vector<std::byte> RandomRow(WeightFormat format, int64_t cols,
                                 Spread spread, std::mt19937& random) {
  std::vector<std::byte> row(static_cast<size_t>(StoredRowBytes(format, cols)));
  for (std::byte& byte : row) {
    byte = std::byte{static_cast<uint8_t>(random())};
  }
  const size_t step = static_cast<size_t>(TraitsOf(format).block_bytes);
  for (size_t at = 0; at < row.size(); at += step) {
    switch (format) {
      case WeightFormat::kF32:
        StoreBytes(RandomFloat(spread, random), &row[at]);
        break;
      case WeightFormat::kBf16:
        StoreBytes(RandomBf16(spread, random), &row[at]);
        break;
      default:
        StoreScale(format, spread, random, &row[at]);
        break;
    }
  }
  return row;
}

}  // namespace millrace::kernels
