#include "tests/support/tiny_weights.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/quant/half.h"

namespace millrace::testing {
namespace {

using kernels::WeightFormat;

// SplitMix64, Steele et al. 2014.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // In [0, bound).
  uint32_t Below(uint32_t bound) {
    return static_cast<uint32_t>(Next() >> 32) % bound;
  }
  // Mean 0, deviation 1: the sum of 12 uniform values less 6, exact in double.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) {
      sum += static_cast<double>(Next() >> 11) * 0x1p-53;
    }
    return sum;
  }

 private:
  uint64_t state_;
};

// FNV-1a.
uint64_t HashOf(const TinyRows& rows, int64_t row) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : rows.name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  return (hash ^ rows.seed) * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(row);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const float magnitude = std::fabs(value);
  if (magnitude < 0x1p-14f) {
    return static_cast<uint16_t>(
        sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
  }
  // Weights here stay far below the largest half.
  const uint32_t rebiased =
      std::bit_cast<uint32_t>(magnitude) - (uint32_t{112} << 23);
  return static_cast<uint16_t>(sign |
                               (rebiased + 0xFFF + (rebiased >> 13 & 1)) >> 13);
}

class RowWriter {
 public:
  RowWriter(const TinyRows& rows, WeightFormat format, int64_t row)
      : rows_(rows), format_(format), row_(row), random_(HashOf(rows, row)) {}

  std::string Write() {
    if (format_ == WeightFormat::kFp8) {
      WriteFp8();
      return std::move(out_);
    }
    const auto& traits = kernels::TraitsOf(format_);
    for (int64_t i = 0; i < rows_.cols / traits.block_elements; ++i) {
      WriteBlock();
    }
    return std::move(out_);
  }

 private:
  template <typename T>
  void Put(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void PutRandom(int bytes) {
    for (int i = 0; i < bytes; ++i) {
      Put(static_cast<uint8_t>(random_.Below(256)));
    }
  }
  void PutHalf(double value) { Put(FloatToHalf(static_cast<float>(value))); }
  // A scale such that codes of deviation `codes` give values of the wanted one;
  // it varies by a factor of two from block to block.
  double Scale(double codes) {
    return rows_.deviation / codes * (0.75 + random_.Below(64) / 128.0);
  }
  // Codes 0 .. 2 * mean, with the minimum that centres them.
  void PutScaleAndMinimum(double codes, double mean) {
    const double scale = Scale(codes);
    PutHalf(scale);
    PutHalf(-mean * scale);
  }
  // Of Q4_K and Q5_K: eight 6-bit scales and minima that differ a little.
  void PutPackedScales() {
    uint8_t scale[8];
    uint8_t minimum[8];
    for (int j = 0; j < 8; ++j) {
      scale[j] = static_cast<uint8_t>(24 + random_.Below(40));
      minimum[j] = static_cast<uint8_t>(scale[j] - 4 + random_.Below(8)) & 63;
    }
    uint8_t packed[12];
    for (int j = 0; j < 4; ++j) {
      packed[j] = static_cast<uint8_t>(scale[j] | (scale[j + 4] >> 4) << 6);
      packed[j + 4] =
          static_cast<uint8_t>(minimum[j] | (minimum[j + 4] >> 4) << 6);
      packed[j + 8] = static_cast<uint8_t>((scale[j + 4] & 15) |
                                           (minimum[j + 4] & 15) << 4);
    }
    for (const uint8_t byte : packed) {
      Put(byte);
    }
  }
  void WriteKBlock(double code_deviation, double code_mean, int code_bytes) {
    // Scales are about 44, so values have deviation 44 * code * d.
    const double scale = Scale(44 * code_deviation);
    PutHalf(scale);
    PutHalf(scale * code_mean);
    PutPackedScales();
    PutRandom(code_bytes);
  }
  void WriteQ6K() {
    PutRandom(128 + 64);
    for (int i = 0; i < 16; ++i) {
      const int scale = 16 + static_cast<int>(random_.Below(48));
      Put(static_cast<int8_t>(random_.Below(2) == 0 ? scale : -scale));
    }
    PutHalf(Scale(18.5 * 40));
  }
  void PutScaleOf(bool half, double value) {
    if (half) {
      PutHalf(value);
    } else {
      Put(kernels::FloatToBf16(static_cast<float>(value)));
    }
  }
  // INT4 of mean 0: scale, zero point where there is one, codes.
  void WriteInt4(bool half, bool zero) {
    PutScaleOf(half, Scale(4.6));
    if (zero) {
      PutScaleOf(half, 6 + random_.Below(4));
    }
    PutRandom(16);
  }
  // MLX: the scale may be negative.
  void WriteMlx(bool half, int bits) {
    const double levels = bits == 8 ? 255 : 15;
    const double scale =
        Scale(levels * 0.29) * (random_.Below(2) == 0 ? 1 : -1);
    PutScaleOf(half, scale);
    PutScaleOf(half, -levels / 2 * scale);
    PutRandom(4 * bits);
  }
  // Doubled values have a deviation of 5.9; the scale is the power of two next
  // below, or half of it.
  void WriteMxfp4() {
    const int exponent = std::ilogb(rows_.deviation / (5.9 / 2));
    Put(static_cast<uint8_t>(127 + exponent -
                             static_cast<int>(random_.Below(2))));
    PutRandom(16);
  }
  // Rows of one block of 128 have the same scales; codes are any but the two
  // that are no number.
  void WriteFp8() {
    Random scales(HashOf(rows_, -1 - row_ / kernels::kFp8ScaleCols));
    for (int64_t k = 0; k < rows_.cols; k += kernels::kFp8ScaleCols) {
      Put(static_cast<float>(rows_.deviation / 107 *
                             (0.75 + scales.Below(64) / 128.0)));
    }
    for (int64_t k = 0; k < rows_.cols; ++k) {
      const uint32_t code = random_.Below(254);
      Put(static_cast<uint8_t>(code < 127 ? code : code + 1));
    }
  }
  // Scales of 4 to 15, each with the minimum that centres its codes.
  void WriteQ2K() {
    for (int i = 0; i < 16; ++i) {
      Put(static_cast<uint8_t>((4 + random_.Below(12)) * 0x11));
    }
    PutRandom(64);
    const double scale = Scale(9.5 * 1.12);
    PutHalf(scale);
    PutHalf(1.5 * scale);
  }
  void WriteQ3K() {
    PutRandom(32 + 64 + 12);
    PutHalf(Scale(18.5 * 2.3));
  }
  void WriteBlock();

  const TinyRows& rows_;
  const WeightFormat format_;
  const int64_t row_;
  Random random_;
  std::string out_;
};

void RowWriter::WriteBlock() {
  const float value =
      static_cast<float>(rows_.mean + rows_.deviation * random_.Normal());
  switch (format_) {
    case WeightFormat::kF32:
      // Rounded so that all plain formats hold the same value.
      Put(kernels::Bf16ToFloat(kernels::FloatToBf16(value)));
      return;
    case WeightFormat::kF16:
      Put(FloatToHalf(kernels::Bf16ToFloat(kernels::FloatToBf16(value))));
      return;
    case WeightFormat::kBf16:
      Put(kernels::FloatToBf16(value));
      return;
    case WeightFormat::kQ4_0:
      PutHalf(Scale(4.6));
      PutRandom(16);
      return;
    case WeightFormat::kQ4_1:
      PutScaleAndMinimum(4.6, 7.5);
      PutRandom(16);
      return;
    case WeightFormat::kQ5_0:
      PutHalf(Scale(9.2));
      PutRandom(20);
      return;
    case WeightFormat::kQ5_1:
      PutScaleAndMinimum(9.2, 15.5);
      PutRandom(20);
      return;
    case WeightFormat::kQ8_0:
      PutHalf(Scale(74));
      PutRandom(32);
      return;
    case WeightFormat::kQ4_K:
      WriteKBlock(4.6, 7.5, 128);
      return;
    case WeightFormat::kQ5_K:
      WriteKBlock(9.2, 15.5, 32 + 128);
      return;
    case WeightFormat::kQ6_K:
      WriteQ6K();
      return;
    case WeightFormat::kQ2_K:
      WriteQ2K();
      return;
    case WeightFormat::kQ3_K:
      WriteQ3K();
      return;
    case WeightFormat::kIq4Nl:
      PutHalf(Scale(67));
      PutRandom(16);
      return;
    case WeightFormat::kMxfp4:
      WriteMxfp4();
      return;
    case WeightFormat::kInt4:
    case WeightFormat::kInt4F16:
      WriteInt4(format_ == WeightFormat::kInt4F16, false);
      return;
    case WeightFormat::kInt4Zero:
    case WeightFormat::kInt4ZeroF16:
      WriteInt4(format_ == WeightFormat::kInt4ZeroF16, true);
      return;
    case WeightFormat::kMlx4:
    case WeightFormat::kMlx4F16:
      WriteMlx(format_ == WeightFormat::kMlx4F16, 4);
      return;
    case WeightFormat::kMlx8:
    case WeightFormat::kMlx8F16:
      WriteMlx(format_ == WeightFormat::kMlx8F16, 8);
      return;
    case WeightFormat::kFp8:
      return;
  }
}

}  // namespace

std::string TinyRow(const TinyRows& rows, WeightFormat format, int64_t row) {
  return RowWriter(rows, format, row).Write();
}

}  // namespace millrace::testing
