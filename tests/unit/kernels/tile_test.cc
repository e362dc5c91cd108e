// Stored rows, tiles and look-ups give the same elements, which are those of
// the formats' definitions; provoked with every code in every place of random
// blocks, shapes with tails, missing rows and unaligned rows.

#include "kernels/quant/tile.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quant/half.h"
#include "kernels/quant/stored_block.h"
#include "tests/unit/kernels/random_rows.h"

namespace millrace::kernels {
namespace {

constexpr uint32_t kSeed = 20117;

std::vector<float> DecodeStored(WeightFormat format,
                                const std::vector<std::byte>& row,
                                int64_t cols) {
  std::vector<float> out(static_cast<size_t>(cols));
  DecodeStoredRow(format, row.data(), cols, out.data());
  return out;
}

double HalfAt(const uint8_t* from) {
  uint16_t half;
  std::memcpy(&half, from, 2);
  const int exponent = half >> 10 & 31;
  const double fraction = half & 0x3ff;
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, -24)
                               : std::ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

void NaiveScales(const uint8_t* s, int j, int* sc, int* m) {
  if (j < 4) {
    *sc = s[j] & 63;
    *m = s[j + 4] & 63;
  } else {
    *sc = (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
    *m = (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
  }
}

std::vector<double> NaiveQ4K(const uint8_t* b, bool fifth) {
  std::vector<double> y(256);
  const double d = HalfAt(b);
  const double dmin = HalfAt(b + 2);
  const uint8_t* qh = b + 16;
  for (int c = 0; c < 4; ++c) {
    const uint8_t* q = b + (fifth ? 48 : 16) + 32 * c;
    int sc[2];
    int m[2];
    NaiveScales(b + 4, 2 * c, &sc[0], &m[0]);
    NaiveScales(b + 4, 2 * c + 1, &sc[1], &m[1]);
    for (int l = 0; l < 32; ++l) {
      const int h0 = fifth ? (qh[l] >> (2 * c) & 1) * 16 : 0;
      const int h1 = fifth ? (qh[l] >> (2 * c + 1) & 1) * 16 : 0;
      y[64 * c + l] = d * sc[0] * ((q[l] & 15) + h0) - dmin * m[0];
      y[64 * c + 32 + l] = d * sc[1] * ((q[l] >> 4) + h1) - dmin * m[1];
    }
  }
  return y;
}

std::vector<double> NaiveQ6K(const uint8_t* b) {
  std::vector<double> y(256);
  const double d = HalfAt(b + 208);
  for (int n = 0; n < 2; ++n) {
    const uint8_t* ql = b + 64 * n;
    const uint8_t* qh = b + 128 + 32 * n;
    for (int l = 0; l < 32; ++l) {
      const int q[4] = {(ql[l] & 15) | (qh[l] & 3) << 4,
                        (ql[l + 32] & 15) | (qh[l] >> 2 & 3) << 4,
                        (ql[l] >> 4) | (qh[l] >> 4 & 3) << 4,
                        (ql[l + 32] >> 4) | (qh[l] >> 6 & 3) << 4};
      for (int i = 0; i < 4; ++i) {
        const int8_t sc = static_cast<int8_t>(b[192 + 8 * n + l / 16 + 2 * i]);
        y[128 * n + 32 * i + l] = d * sc * (q[i] - 32);
      }
    }
  }
  return y;
}

std::vector<double> NaiveBlock32(WeightFormat format, const uint8_t* b) {
  std::vector<double> y(32);
  const double d = HalfAt(b);
  for (int j = 0; j < 16; ++j) {
    uint32_t qh = 0;
    switch (format) {
      case WeightFormat::kQ4_0:
        y[j] = ((b[2 + j] & 15) - 8) * d;
        y[j + 16] = ((b[2 + j] >> 4) - 8) * d;
        break;
      case WeightFormat::kQ4_1:
        y[j] = (b[4 + j] & 15) * d + HalfAt(b + 2);
        y[j + 16] = (b[4 + j] >> 4) * d + HalfAt(b + 2);
        break;
      case WeightFormat::kQ5_0:
        std::memcpy(&qh, b + 2, 4);
        y[j] = (((b[6 + j] & 15) | (qh >> j & 1) << 4) - 16.0) * d;
        y[j + 16] = (((b[6 + j] >> 4) | (qh >> (j + 16) & 1) << 4) - 16.0) * d;
        break;
      case WeightFormat::kQ5_1:
        std::memcpy(&qh, b + 4, 4);
        y[j] = ((b[8 + j] & 15) | (qh >> j & 1) << 4) * d + HalfAt(b + 2);
        y[j + 16] =
            ((b[8 + j] >> 4) | (qh >> (j + 16) & 1) << 4) * d + HalfAt(b + 2);
        break;
      default:
        y[j] = static_cast<int8_t>(b[2 + j]) * d;
        y[j + 16] = static_cast<int8_t>(b[18 + j]) * d;
        break;
    }
  }
  return y;
}

std::vector<double> NaiveQ2K(const uint8_t* b) {
  std::vector<double> y;
  const double d = HalfAt(b + 80);
  const double dmin = HalfAt(b + 82);
  for (int n = 0; n < 2; ++n) {
    for (int s = 0; s < 8; s += 2) {
      for (int l = 0; l < 32; ++l) {
        const int sc = b[8 * n + s + l / 16];
        const int q = b[16 + 32 * n + l] >> s & 3;
        y.push_back(d * (sc & 15) * q - dmin * (sc >> 4));
      }
    }
  }
  return y;
}

int NaiveQ3KScale(const uint8_t* s, int k) {
  const int low = k < 8 ? s[k] & 15 : s[k - 8] >> 4;
  const int high = s[8 + k % 4] >> (2 * (k / 4)) & 3;
  return (low | high << 4) - 32;
}

std::vector<double> NaiveQ3K(const uint8_t* b) {
  std::vector<double> y;
  const double d = HalfAt(b + 108);
  for (int n = 0; n < 2; ++n) {
    for (int s = 0; s < 8; s += 2) {
      for (int l = 0; l < 32; ++l) {
        const int q = b[32 + 32 * n + l] >> s & 3;
        const bool set = (b[l] >> (4 * n + s / 2) & 1) != 0;
        const int scale = NaiveQ3KScale(b + 96, 8 * n + s + l / 16);
        y.push_back(d * scale * (q - (set ? 0 : 4)));
      }
    }
  }
  return y;
}

std::vector<double> NaiveIq4Nl(const uint8_t* b) {
  constexpr int kValues[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                             1,    13,   25,  38,  53,  69,  89,  113};
  std::vector<double> y(32);
  for (int j = 0; j < 16; ++j) {
    y[j] = HalfAt(b) * kValues[b[2 + j] & 15];
    y[j + 16] = HalfAt(b) * kValues[b[2 + j] >> 4];
  }
  return y;
}

std::vector<double> NaiveMxfp4(const uint8_t* b) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const auto value = [&](int code) {
    // Code 0 of the scale, 2^-127 in the standard, is 0 here.
    const double scale = b[0] == 0 ? 0 : std::ldexp(1.0, b[0] - 127);
    return (code & 8 ? -1 : 1) * kValues[code & 7] * scale;
  };
  std::vector<double> y(32);
  for (int j = 0; j < 16; ++j) {
    y[j] = value(b[1 + j] & 15);
    y[j + 16] = value(b[1 + j] >> 4);
  }
  return y;
}

double Bf16At(const uint8_t* from) {
  const uint32_t bits = static_cast<uint32_t>(from[0] | from[1] << 8) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// INT4 (symmetric, with zero points) and MLX.
std::vector<double> NaiveAffine(WeightFormat format, const uint8_t* b) {
  const std::string name = TraitsOf(format).name;
  const bool half = name.ends_with("_f16");
  const double scale = half ? HalfAt(b) : Bf16At(b);
  const double second = half ? HalfAt(b + 2) : Bf16At(b + 2);
  std::vector<double> y;
  for (int k = 0; k < 32; ++k) {
    if (name.starts_with("mlx8")) {
      y.push_back(b[4 + k] * scale + second);
      continue;
    }
    const bool symmetric = !name.starts_with("int4_zero");
    const bool int4 = name.starts_with("int4");
    const uint8_t byte = b[(int4 && symmetric ? 2 : 4) + k / 2];
    const int code = k % 2 == 0 ? byte & 15 : byte >> 4;
    y.push_back(int4 ? (code - (symmetric ? 8 : second)) * scale
                     : code * scale + second);
  }
  return y;
}

std::vector<double> NaiveBlock(WeightFormat format, const uint8_t* block) {
  switch (format) {
    case WeightFormat::kQ4_K:
      return NaiveQ4K(block, false);
    case WeightFormat::kQ5_K:
      return NaiveQ4K(block, true);
    case WeightFormat::kQ6_K:
      return NaiveQ6K(block);
    case WeightFormat::kQ2_K:
      return NaiveQ2K(block);
    case WeightFormat::kQ3_K:
      return NaiveQ3K(block);
    case WeightFormat::kIq4Nl:
      return NaiveIq4Nl(block);
    case WeightFormat::kMxfp4:
      return NaiveMxfp4(block);
    default:
      return format >= WeightFormat::kInt4 ? NaiveAffine(format, block)
                                           : NaiveBlock32(format, block);
  }
}

class FormatTest : public testing::TestWithParam<int> {
 protected:
  WeightFormat format() const { return static_cast<WeightFormat>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, FormatTest, testing::Range(0, kNumWeightFormats),
                         [](const testing::TestParamInfo<int>& info) {
                           return std::string(
                               kWeightFormatTraits[info.param].name);
                         });

class BlockFormatTest : public FormatTest {};

INSTANTIATE_TEST_SUITE_P(All, BlockFormatTest,
                         testing::Range(static_cast<int>(WeightFormat::kQ4_0),
                                        kNumWeightFormats),
                         [](const testing::TestParamInfo<int>& info) {
                           return std::string(
                               kWeightFormatTraits[info.param].name);
                         });

TEST_P(BlockFormatTest, StoredRowFollowsTheDefinitionOfTheFormat) {
  const WeightFormatTraits& traits = TraitsOf(format());
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 50; ++trial) {
    const std::vector<std::byte> row =
        RandomRow(format(), traits.block_elements, Spread::kFinite, random);
    const std::vector<double> want =
        NaiveBlock(format(), reinterpret_cast<const uint8_t*>(row.data()));
    const std::vector<float> got =
        DecodeStored(format(), row, traits.block_elements);
    for (size_t k = 0; k < got.size(); ++k) {
      // One rounding at most, of a difference or a sum.
      ASSERT_EQ(got[k], static_cast<float>(want[k])) << "element " << k;
    }
  }
}

TEST_P(FormatTest, TileGivesTheStoredElementsBack) {
  const WeightFormatTraits& traits = TraitsOf(format());
  std::mt19937 random(kSeed);
  for (const int64_t blocks : {1, 2, 3, 5}) {
    const int64_t cols = traits.block_elements == 1
                             ? 7 * blocks
                             : traits.block_elements * blocks;
    for (const int num_rows : {1, 7, 16}) {
      const int64_t stride = StoredRowBytes(format(), cols) + 3;
      std::vector<std::byte> stored(static_cast<size_t>(stride * num_rows + 1));
      const std::vector<std::byte> rows =
          RandomRows(format(), num_rows, cols, Spread::kFinite, random);
      std::vector<std::vector<float>> want;
      for (int row = 0; row < num_rows; ++row) {
        const auto from = rows.begin() + row * (stride - 3);
        const std::vector<std::byte> bytes(from, from + (stride - 3));
        std::memcpy(&stored[static_cast<size_t>(1 + row * stride)],
                    bytes.data(), bytes.size());
        want.push_back(DecodeStored(format(), bytes, cols));
      }
      const int64_t tile_bytes = TileBytes(format(), cols);
      ASSERT_EQ(tile_bytes % 64, 0);
      std::vector<std::byte> tile(static_cast<size_t>(tile_bytes),
                                  std::byte{0xaa});
      ASSERT_EQ(PackTile(format(), stored.data() + 1, stride, num_rows, cols,
                         tile.data()),
                TileError::kNone);
      want.resize(kTileRows, std::vector<float>(static_cast<size_t>(cols)));
      for (int row = 0; row < kTileRows; ++row) {
        std::vector<float> got(static_cast<size_t>(cols));
        DecodeTileRow(format(), tile.data(), row, cols, got.data());
        ASSERT_EQ(got, want[static_cast<size_t>(row)]) << "row " << row;
      }
    }
  }
}

TEST(TileBytesTest, RecordsHaveTheDocumentedSizes) {
  EXPECT_EQ(TileBytes(WeightFormat::kF32, 5), 320);
  EXPECT_EQ(TileBytes(WeightFormat::kF16, 5), 192);
  EXPECT_EQ(TileBytes(WeightFormat::kBf16, 5), 192);
  EXPECT_EQ(TileBytes(WeightFormat::kQ4_0, 64), 576);
  EXPECT_EQ(TileBytes(WeightFormat::kQ4_0, 96), 576 + 320);
  EXPECT_EQ(TileBytes(WeightFormat::kQ4_1, 32), 320);
  EXPECT_EQ(TileBytes(WeightFormat::kQ5_0, 64), 704);
  EXPECT_EQ(TileBytes(WeightFormat::kQ5_0, 32), 384);
  EXPECT_EQ(TileBytes(WeightFormat::kQ5_1, 32), 384);
  EXPECT_EQ(TileBytes(WeightFormat::kQ8_0, 64), 1088);
  EXPECT_EQ(TileBytes(WeightFormat::kQ8_0, 32), 576);
  EXPECT_EQ(TileBytes(WeightFormat::kQ4_K, 512), 2 * 2304);
  EXPECT_EQ(TileBytes(WeightFormat::kQ5_K, 256), 2816);
  EXPECT_EQ(TileBytes(WeightFormat::kQ6_K, 256), 64 + 3328);
  EXPECT_EQ(TileBytes(WeightFormat::kQ6_K, 768), 128 + 3 * 3328);
  EXPECT_EQ(TileBytes(WeightFormat::kQ2_K, 512), 2 * 1344);
  EXPECT_EQ(TileBytes(WeightFormat::kQ3_K, 256), 64 + 1728);
  EXPECT_EQ(TileBytes(WeightFormat::kIq4Nl, 64), 576);
  EXPECT_EQ(TileBytes(WeightFormat::kMxfp4, 128), 1088);
  EXPECT_EQ(TileBytes(WeightFormat::kMxfp4, 160), 1088 + 320);
  EXPECT_EQ(TileBytes(WeightFormat::kInt4, 64), 576);
  EXPECT_EQ(TileBytes(WeightFormat::kInt4Zero, 32), 320);
  EXPECT_EQ(TileBytes(WeightFormat::kMlx4, 32), 320);
  EXPECT_EQ(TileBytes(WeightFormat::kMlx8F16, 32), 576);
}

// The places of section "Tiles" of the README, spot by spot.
TEST(TilePlacesTest, QuadsNibblesAndScalesLieWhereDocumented) {
  std::vector<std::byte> row(2 * 18);
  for (int block = 0; block < 2; ++block) {
    const uint16_t d = static_cast<uint16_t>(0x3c00 + block);
    std::memcpy(&row[static_cast<size_t>(18 * block)], &d, 2);
  }
  row[2 + 5] = std::byte{0x09};        // element 5 of group 0: code 9
  row[18 + 2 + 15] = std::byte{0xe0};  // element 31 of group 1: code 14
  std::vector<std::byte> tile(
      static_cast<size_t>(TileBytes(WeightFormat::kQ4_0, 64)));
  PackTile(WeightFormat::kQ4_0, row.data(), 36, 1, 64, tile.data());
  EXPECT_EQ(LoadBytes<uint16_t>(tile.data()), 0x3c00);
  EXPECT_EQ(LoadBytes<uint16_t>(tile.data() + 32), 0x3c01);
  // k = 5: quad 1, high nibble of register 0, byte 1 of row 0.
  EXPECT_EQ(tile[64 + 1], std::byte{0x90});
  // k = 31: quad 7, high nibble of register 3, byte 3 of row 0.
  EXPECT_EQ(tile[320 + 3 * 64 + 3], std::byte{0xe0});
}

// Two planes of two bits, one of one bit, six-bit scales and the d in front.
TEST(TilePlacesTest, PlanesOfQ3KLieWhereDocumented) {
  std::vector<std::byte> row(110);
  row[109] = std::byte{0x3c};          // d = 1
  row[32 + 32 + 5] = std::byte{0xc0};  // element 229: low bits 3
  row[5] = std::byte{0x80};            // and its third bit: code 7
  row[96 + 7] = std::byte{0x90};       // scale 15: low bits 9
  row[96 + 11] = std::byte{0x40};      // and its high bits: 1
  std::vector<std::byte> tile(
      static_cast<size_t>(TileBytes(WeightFormat::kQ3_K, 256)));
  PackTile(WeightFormat::kQ3_K, row.data(), 110, 1, 256, tile.data());
  EXPECT_EQ(LoadBytes<uint16_t>(tile.data()), 0x3c00);
  const std::byte* record = tile.data() + 64;
  // Scale 15 is in the last of four vectors of 64, at 48: two bits in each of
  // the other three.
  EXPECT_EQ(record[48] >> 6, std::byte{25 & 3});
  EXPECT_EQ(record[64 + 48] >> 6, std::byte{25 >> 2 & 3});
  EXPECT_EQ(record[128 + 48] >> 6, std::byte{25 >> 4});
  // k = 5 of group 7: quad 1, byte 1 of row 0; bits 2-3 of plane A, bit 1 of
  // the last plane.
  const std::byte* codes = record + 192 + 7 * 192;
  EXPECT_EQ(codes[1], std::byte{3 << 2});
  EXPECT_EQ(codes[128 + 1], std::byte{1 << 1});
}

TEST(Mxfp4Test, AScaleThatIsNoNumberIsRefusedAndZeroIsZero) {
  std::mt19937 random(kSeed);
  const std::vector<std::byte> good =
      RandomRow(WeightFormat::kMxfp4, 96, Spread::kFinite, random);
  std::vector<std::byte> tile(
      static_cast<size_t>(TileBytes(WeightFormat::kMxfp4, 96)));
  const auto pack = [&](const std::vector<std::byte>& row) {
    return PackTile(WeightFormat::kMxfp4, row.data(), 51, 1, 96, tile.data());
  };
  EXPECT_EQ(pack(good), TileError::kNone);
  for (const size_t block : {0, 1, 2}) {
    std::vector<std::byte> bad = good;
    bad[17 * block] = std::byte{255};
    EXPECT_EQ(pack(bad), TileError::kBadScale);
  }
  std::vector<std::byte> row(51, std::byte{0x77});
  row[0] = std::byte{0};
  row[17] = std::byte{1};
  row[34] = std::byte{254};
  const std::vector<float> values = DecodeStored(WeightFormat::kMxfp4, row, 96);
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[32], 6 * 0x1p-126f);
  EXPECT_TRUE(std::isinf(values[64]));  // 6 times 2^127
}

// Where the 16-bit numbers of a block stand.
struct NumbersOfBlock {
  WeightFormat format;
  std::vector<size_t> offsets;
};

TEST(TileTest, ScalesAndMinimaThatAreNotFiniteAreRefused) {
  using enum WeightFormat;
  const NumbersOfBlock formats[] = {
      {kQ4_0, {0}},      {kQ4_1, {0, 2}},    {kQ5_0, {0}},
      {kQ5_1, {0, 2}},   {kQ8_0, {0}},       {kQ2_K, {80, 82}},
      {kQ3_K, {108}},    {kQ4_K, {0, 2}},    {kQ5_K, {0, 2}},
      {kQ6_K, {208}},    {kIq4Nl, {0}},      {kInt4, {0}},
      {kInt4F16, {0}},   {kInt4Zero, {0}},   {kInt4ZeroF16, {0}},
      {kMlx4, {0, 2}},   {kMlx4F16, {0, 2}}, {kMlx8, {0, 2}},
      {kMlx8F16, {0, 2}}};
  std::mt19937 random(kSeed);
  constexpr int64_t kCols = 512;
  for (const auto& [format, offsets] : formats) {
    SCOPED_TRACE(TraitsOf(format).name);
    const std::vector<std::byte> good =
        RandomRow(format, kCols, Spread::kFinite, random);
    std::vector<std::byte> tile(static_cast<size_t>(TileBytes(format, kCols)));
    const auto pack = [&](const std::vector<std::byte>& row) {
      return PackTile(format, row.data(), 0, 1, kCols, tile.data());
    };
    EXPECT_EQ(pack(good), TileError::kNone);
    const size_t last =
        good.size() - static_cast<size_t>(TraitsOf(format).block_bytes);
    for (const size_t offset : offsets) {
      // A NaN in either type.
      std::vector<std::byte> bad = good;
      std::memset(bad.data() + last + offset, 0xff, 2);
      EXPECT_EQ(pack(bad), TileError::kBadScale) << offset;
    }
  }
}

TEST(StoredBlockTest, PairsBecomeHalvesElementByElement) {
  std::mt19937 random(kSeed);
  std::byte pairs[16];
  for (std::byte& byte : pairs) {
    byte = std::byte{static_cast<uint8_t>(random())};
  }
  std::byte halves[16];
  PairsToHalves(pairs, halves);
  for (size_t k = 0; k < 32; ++k) {
    const std::byte pair = pairs[k / 2] >> (k % 2 == 0 ? 0 : 4);
    const std::byte half = halves[k % 16] >> (k < 16 ? 0 : 4);
    EXPECT_EQ(pair & std::byte{15}, half & std::byte{15}) << "element " << k;
  }
}

TEST(StoredBlockTest, ARowOfFp8HasAScaleForEachPartOf128Columns) {
  EXPECT_EQ(StoredRowBytes(WeightFormat::kFp8, 128), 4 + 128);
  EXPECT_EQ(StoredRowBytes(WeightFormat::kFp8, 136), 8 + 136);
  EXPECT_EQ(StoredRowBytes(WeightFormat::kInt4Zero, 64), 40);
}

TEST(HalfTest, ConvertsEveryHalfAndRoundsToBf16) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7c00) == 0x7c00) {
      continue;
    }
    const uint8_t bytes[2] = {static_cast<uint8_t>(half),
                              static_cast<uint8_t>(half >> 8)};
    ASSERT_EQ(HalfToFloat(static_cast<uint16_t>(half)), HalfAt(bytes));
  }
  EXPECT_EQ(HalfToFloat(0x7c00), INFINITY);
  EXPECT_EQ(HalfToFloat(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e01)));
  EXPECT_EQ(FloatToBf16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBf16(0x1.01p0f), 0x3f80);        // tie to even, down
  EXPECT_EQ(FloatToBf16(0x1.03p0f), 0x3f82);        // tie to even, up
  EXPECT_EQ(FloatToBf16(0x1.fffffep127f), 0x7f80);  // rounds to infinity
  EXPECT_EQ(FlushTinyBf16(FloatToBf16(-0x1.fep-51f)), 0);
  EXPECT_EQ(FlushTinyBf16(FloatToBf16(0x1p-50f)), 0x2680);
}

}  // namespace
}  // namespace millrace::kernels
