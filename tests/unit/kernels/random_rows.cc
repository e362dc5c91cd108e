#include "tests/unit/kernels/random_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/quant/fp8.h"
#include "kernels/quant/fp8_tile.h"
#include "kernels/quant/half.h"
#include "kernels/quant/tile_layout.h"

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

// A scale as bf16. Finite ones leave room for the product with a code.
uint16_t RandomBf16Scale(Spread spread, std::mt19937& random) {
  if (spread == Spread::kOrdinary) {
    return FloatToBf16(HalfToFloat(RandomHalf(spread, random)));
  }
  const uint16_t scale = RandomBf16(spread, random);
  const bool large = (scale & 0x7fff) >= 0x7a00;  // 2^117
  return spread == Spread::kFinite && large ? scale & 0xbfff : scale;
}

uint8_t RandomE8m0(Spread spread, std::mt19937& random) {
  if (spread == Spread::kOrdinary) {
    return static_cast<uint8_t>(119 + random() % 5);
  }
  // Not 255, which no checkpoint may hold; finite: times 12 stays finite.
  return static_cast<uint8_t>(random() %
                              (spread == Spread::kFinite ? 250 : 255));
}

void StoreScale(WeightFormat format, Spread spread, std::mt19937& random,
                std::byte* block) {
  const TileLayout& layout = LayoutOf(format);
  std::byte* at = block + FloatBytesOf(format).begin;
  if (layout.scale == ScaleType::kE8m0) {
    *at = std::byte{RandomE8m0(spread, random)};
    return;
  }
  const bool bf16 = layout.scale == ScaleType::kBf16;
  const auto draw = [&] {
    return bf16 ? RandomBf16Scale(spread, random) : RandomHalf(spread, random);
  };
  StoreBytes(draw(), at);
  if (layout.minimum == Minimum::kZeroPoint) {
    const auto zero = static_cast<float>(random() % 16);
    const uint16_t half = static_cast<uint16_t>(
        zero == 0 ? 0 : ((std::bit_cast<uint32_t>(zero) >> 13) - (112 << 10)));
    StoreBytes(bf16 ? FloatToBf16(zero) : half, at + 2);
  } else if (layout.minimum != Minimum::kNone) {
    StoreBytes(draw(), at + 2);
  }
}

std::vector<std::byte> RandomFp8Row(int64_t cols, Spread spread,
                                    std::mt19937& random) {
  std::vector<std::byte> row(
      static_cast<size_t>(StoredRowBytes(WeightFormat::kFp8, cols)));
  const size_t codes = static_cast<size_t>(Fp8Blocks(cols)) * 4;
  for (size_t at = 0; at < codes; at += 4) {
    StoreBytes(
        RandomFloat(spread == Spread::kAny ? Spread::kFinite : spread, random),
        &row[at]);
  }
  for (size_t at = codes; at < row.size(); ++at) {
    const auto code = static_cast<uint8_t>(random());
    row[at] = std::byte{IsFp8Nan(code) ? uint8_t{0x80} : code};
  }
  return row;
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

FloatBytes FloatBytesOf(WeightFormat format) {
  if (!IsQuantised(format)) {
    return {0, TraitsOf(format).block_bytes};
  }
  const TileLayout& layout = LayoutOf(format);
  const int64_t bytes = layout.scale == ScaleType::kE8m0   ? 1
                        : layout.minimum == Minimum::kNone ? 2
                                                           : 4;
  // Of these they stand at the end.
  const bool last = format == WeightFormat::kQ2_K ||
                    format == WeightFormat::kQ3_K ||
                    format == WeightFormat::kQ6_K;
  const int64_t begin = last ? TraitsOf(format).block_bytes - bytes : 0;
  return {begin, begin + bytes};
}

std::vector<std::byte> RandomRow(WeightFormat format, int64_t cols,
                                 Spread spread, std::mt19937& random) {
  if (format == WeightFormat::kFp8) {
    return RandomFp8Row(cols, spread, random);
  }
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
      case WeightFormat::kF16:
        StoreBytes(RandomHalf(spread, random), &row[at]);
        break;
      case WeightFormat::kBf16:
        StoreBytes(RandomBf16(spread, random), &row[at]);
        break;
      default:
        // No tile takes scales that are not finite.
        StoreScale(format, spread == Spread::kAny ? Spread::kFinite : spread,
                   random, &row[at]);
        break;
    }
  }
  return row;
}

std::vector<std::byte> RandomRows(WeightFormat format, int64_t num_rows,
                                  int64_t cols, Spread spread,
                                  std::mt19937& random) {
  const bool fp8 = format == WeightFormat::kFp8;
  const std::ptrdiff_t shared = fp8 ? Fp8Blocks(cols) * 4 : 0;
  std::vector<std::byte> out;
  for (int64_t row = 0; row < num_rows; ++row) {
    std::vector<std::byte> bytes = RandomRow(format, cols, spread, random);
    if (row > 0) {
      std::copy(out.begin(), out.begin() + shared, bytes.begin());
    }
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace millrace::kernels
