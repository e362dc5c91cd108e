#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/vector/elementary.h"
#include "kernels/vector/half.h"

namespace millrace::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double RelativeError(double got, double want) {
  return std::abs(got - want) / std::max(std::abs(want), 1e-300);
}

// exp stays within 1e-7 of libm in double over its whole range, provoked by
// walking it in odd steps.
TEST(Elementary, ExpFollowsDoublePrecision) {
  double worst = 0;
  for (float x = -86.9f; x < 88.0f; x += 0.000977f) {
    worst = std::max(
        worst, RelativeError(scalar::Exp(x), std::exp(static_cast<double>(x))));
  }
  EXPECT_LT(worst, 1e-7);
}

// Outside its range exp gives the agreed values and no subnormal.
TEST(Elementary, ExpAtTheBorders) {
  EXPECT_EQ(scalar::Exp(0.0f), 1.0f);
  EXPECT_EQ(scalar::Exp(-0.0f), 1.0f);
  EXPECT_GT(scalar::Exp(-87.0f), std::numeric_limits<float>::min());
  EXPECT_EQ(scalar::Exp(std::nextafter(-87.0f, -kInf)), 0.0f);
  EXPECT_EQ(scalar::Exp(-kInf), 0.0f);
  EXPECT_LT(scalar::Exp(88.0f), kInf);
  EXPECT_EQ(scalar::Exp(std::nextafter(88.0f, kInf)), kInf);
  EXPECT_TRUE(std::isnan(scalar::Exp(kNan)));
}

// silu stays within 2e-7 of double precision.
TEST(Elementary, SiluFollowsDoublePrecision) {
  double worst = 0;
  for (float x = -80.0f; x < 80.0f; x += 0.00077f) {
    const double want = x / (1.0 + std::exp(-static_cast<double>(x)));
    worst = std::max(worst, RelativeError(scalar::Silu(x), want));
  }
  EXPECT_LT(worst, 2e-7);
}

// log stays within 2e-7 (near 1: of the argument's distance from it).
TEST(Elementary, LogFollowsDoublePrecision) {
  double worst = 0;
  for (float x = 1e-3f; x < 4e5f; x *= 1.00013f) {
    worst = std::max(
        worst, RelativeError(scalar::Log(x), std::log(static_cast<double>(x))));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(scalar::Log(1.0f), 0.0f);
}

// Every half survives the way to float and back; halves in between round to the
// nearer one, ties to even, provoked over all 65536 of them.
TEST(Half, F16RoundTripAndRounding) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float x = scalar::F32FromF16(static_cast<uint16_t>(h));
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(scalar::F32FromF16(scalar::F16FromF32(x))));
      continue;
    }
    ASSERT_EQ(scalar::F16FromF32(x), h);
    if ((h & 0x7fff) >= 0x7bff) {
      continue;
    }
    const float next = scalar::F32FromF16(static_cast<uint16_t>(h + 1));
    const float middle = x + (next - x) / 2;
    ASSERT_EQ(scalar::F16FromF32(middle), h + (h & 1)) << h;
    ASSERT_EQ(scalar::F16FromF32(std::nextafter(middle, x)), h) << h;
    ASSERT_EQ(scalar::F16FromF32(std::nextafter(middle, next)), h + 1) << h;
  }
  EXPECT_EQ(scalar::F16FromF32(65519.996f), 0x7bff);
  EXPECT_EQ(scalar::F16FromF32(65520.0f), 0x7c00);
  EXPECT_EQ(scalar::F32FromF16(0x3c00), 1.0f);
  EXPECT_EQ(scalar::F32FromF16(1), 0x1p-24f);
}

// bf16 rounds to nearest even and keeps a NaN whose payload would carry over.
TEST(Half, Bf16Rounding) {
  EXPECT_EQ(scalar::Bf16FromF32(1.0f), 0x3f80);
  EXPECT_EQ(scalar::Bf16FromF32(0x1.01p0f), 0x3f80);
  EXPECT_EQ(scalar::Bf16FromF32(0x1.03p0f), 0x3f82);
  EXPECT_EQ(scalar::Bf16FromF32(0x1.010002p0f), 0x3f81);
  EXPECT_EQ(scalar::Bf16FromF32(std::numeric_limits<float>::max()), 0x7f80);
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(scalar::F32FromBf16(scalar::Bf16FromF32(nan))));
}

// Key and counter 0 give the published words; another counter none of them.
TEST(Philox, CheckValues) {
  const PhiloxBlock got = Philox4x32(0, {});
  EXPECT_EQ(got.words[0], 0x6627e8d5u);
  EXPECT_EQ(got.words[1], 0xe169c58du);
  EXPECT_EQ(got.words[2], 0xbc57ac4cu);
  EXPECT_EQ(got.words[3], 0x9b00dbd8u);
  const uint64_t ones = ~uint64_t{0};
  const PhiloxBlock all = Philox4x32(ones, {{~0u, ~0u, ~0u, ~0u}});
  EXPECT_EQ(all.words[0], 0x408f276du);
  EXPECT_EQ(all.words[1], 0x41c83b0eu);
  EXPECT_EQ(all.words[2], 0xa20bc7c6u);
  EXPECT_EQ(all.words[3], 0x6d5451fdu);
}

// Draws lie in [0, 1), differ by seed, position and choice, and average 1/2.
TEST(Philox, UniformDraws) {
  EXPECT_EQ(UniformDraw(0, 0, 0),
            static_cast<double>(0x6627e8d5e169c58du >> 11) * 0x1p-53);
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(2, 2, 3));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(1, 3, 3));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(1, 2, 4));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(uint64_t{1} << 32, 2, 3));
  double sum = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const double u = UniformDraw(7, i, 0);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace millrace::kernels
