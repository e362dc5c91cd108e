// FP8 weights are what their definition says: every code, the places of a tile,
// blocks of 128 columns in products, and codes and scales that are no numbers
// are found; provoked with every code, columns beside the ends of blocks and
// one wrong byte.

#include "kernels/quant/fp8.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/quant/fp8_tile.h"
#include "kernels/quant/half.h"
#include "kernels/quant/tile.h"
#include "tests/unit/kernels/matmul_case.h"

namespace millrace::kernels {
namespace {

constexpr WeightFormat kFormat = WeightFormat::kFp8;
constexpr uint32_t kSeed = 5077;

double Naive(int code) {
  const int exponent = code >> 3 & 15;
  const int fraction = code & 7;
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, -9)
                               : std::ldexp(8 + fraction, exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

TEST(Fp8Test, EveryCodeHasItsValue) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    ASSERT_EQ(IsFp8Nan(byte), code == 0x7f || code == 0xff);
    if (!IsFp8Nan(byte)) {
      ASSERT_EQ(Fp8ToFloat(byte), Naive(code)) << code;
      ASSERT_EQ(std::signbit(Fp8ToFloat(byte)), code >= 0x80) << code;
    }
  }
}

// Codes of 0 and scales of 1.
std::vector<std::byte> PlainRow(int64_t cols) {
  std::vector<std::byte> row(
      static_cast<size_t>(StoredRowBytes(kFormat, cols)));
  for (int64_t block = 0; block < Fp8Blocks(cols); ++block) {
    StoreBytes(1.0f, &row[static_cast<size_t>(4 * block)]);
  }
  return row;
}

TEST(Fp8Test, CodesAndScalesLieWhereDocumented) {
  std::vector<std::byte> row = PlainRow(130);
  StoreBytes(0.5f, &row[4]);
  row[8 + 6] = std::byte{0x21};
  row[8 + 129] = std::byte{0x42};
  std::vector<std::byte> tile(static_cast<size_t>(TileBytes(kFormat, 130)));
  ASSERT_EQ(tile.size(), 64u + 33 * 64);
  // Row 5 of a tile of equal rows.
  ASSERT_EQ(PackTile(kFormat, row.data(), 0, 16, 130, tile.data()),
            TileError::kNone);
  EXPECT_EQ(LoadBytes<float>(tile.data()), 1.0f);
  EXPECT_EQ(LoadBytes<float>(tile.data() + 4), 0.5f);
  // k = 6: quad 1, second pair, its first column.
  EXPECT_EQ(tile[64 + 64 + 16 + 8 + 2], std::byte{0x21});
  // k = 129: quad 32, first pair, its second column.
  EXPECT_EQ(tile[64 + 32 * 64 + 16 + 2 + 1], std::byte{0x42});
  std::vector<float> out(130);
  DecodeTileRow(kFormat, tile.data(), 5, 130, out.data());
  EXPECT_EQ(out[6], static_cast<float>(Naive(0x21)));
  EXPECT_EQ(out[129], static_cast<float>(Naive(0x42) / 2));
}

TEST(Fp8Test, WhatIsNoNumberIsFound) {
  for (const int64_t at : {0, 1, 127, 128, 130}) {
    for (const uint8_t code : {0x7f, 0xff}) {
      std::vector<std::byte> row = PlainRow(131);
      row[static_cast<size_t>(8 + at)] = std::byte{code};
      std::vector<std::byte> tile(static_cast<size_t>(TileBytes(kFormat, 131)));
      EXPECT_EQ(PackTile(kFormat, row.data(), 0, 3, 131, tile.data()),
                TileError::kBadCode);
      std::vector<float> out(131);
      DecodeStoredRow(kFormat, row.data(), 131, out.data());
      EXPECT_TRUE(std::isnan(out[static_cast<size_t>(at)]));
    }
  }
  for (const float scale : {INFINITY, -INFINITY, NAN}) {
    std::vector<std::byte> row = PlainRow(131);
    StoreBytes(scale, &row[4]);
    std::vector<std::byte> tile(static_cast<size_t>(TileBytes(kFormat, 131)));
    EXPECT_EQ(PackTile(kFormat, row.data(), 0, 1, 131, tile.data()),
              TileError::kBadScale);
  }
  std::vector<std::byte> row = PlainRow(4);
  row[4] = std::byte{0x7e};
  row[5] = std::byte{0xfe};
  std::vector<std::byte> tile(static_cast<size_t>(TileBytes(kFormat, 4)));
  EXPECT_EQ(PackTile(kFormat, row.data(), 0, 1, 4, tile.data()),
            TileError::kNone);
}

// One row against one token, in the formula of the README step by step, with
// activations that need their order: sums that cancel and roundings.
TEST(Fp8Test, FastProductFollowsTheWrittenFormula) {
  std::mt19937 random(kSeed);
  for (const int64_t cols : {1, 2, 127, 128, 129, 130, 131, 255, 256, 300}) {
    const MatMulCase product({kFormat, 1, cols, 1, false}, Spread::kOrdinary,
                             Spread::kFinite, random);
    const std::byte* codes = product.Row(0) + 4 * Fp8Blocks(cols);
    const auto w = [&](int64_t k) {
      return k < cols ? Fp8ToFloat(std::to_integer<uint8_t>(codes[k])) : 0.0f;
    };
    const auto x = [&](int64_t k) {
      return k < cols
                 ? Bf16ToFloat(FlushTinyBf16(FloatToBf16(product.Token(0)[k])))
                 : 0.0f;
    };
    float want = 0;
    for (int64_t begin = 0; begin < cols; begin += 128) {
      float sum = 0;
      for (int64_t k = begin; k < begin + 128 && k < cols; k += 2) {
        sum = std::fma(w(k + 1), x(k + 1), sum);
        sum = std::fma(w(k), x(k), sum);
      }
      want = std::fma(sum, LoadBytes<float>(product.Row(0) + begin / 128 * 4),
                      want);
    }
    const float got = RunMatMul(BuildKernelTable(Isa::kScalar),
                                ComputeMode::kFast, product)[0];
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
        << cols << " columns: " << got << " and " << want;
  }
}

}  // namespace
}  // namespace millrace::kernels
