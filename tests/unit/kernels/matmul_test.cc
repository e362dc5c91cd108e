// The scalar products are what the README says: checked against double
// precision, against a chain of fused steps over decoded rows, and for the same
// bits whatever the batch around a token; provoked with random weights, odd
// group counts, absent rows, strides and row lists.

#include "kernels/matmul/matmul.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/matmul/activation_record.h"
#include "kernels/quant/half.h"
#include "kernels/quant/tile.h"
#include "tests/unit/kernels/matmul_case.h"

namespace millrace::kernels {
namespace {

constexpr uint32_t kSeed = 77131;

std::string FormatName(const testing::TestParamInfo<int>& info) {
  return kWeightFormatTraits[static_cast<size_t>(info.param)].name;
}

class MatMulTest : public testing::TestWithParam<int> {
 protected:
  WeightFormat format() const { return static_cast<WeightFormat>(GetParam()); }
  MatMulShape ShapeOf(int64_t rows, int64_t blocks, int64_t tokens) const {
    const int64_t elements = TraitsOf(format()).block_elements;
    const int64_t cols = elements == 1 ? 13 * blocks : elements * blocks;
    return {format(), rows, cols, tokens, rows % 2 == 0};
  }
  const KernelTable table_ = BuildKernelTable(Isa::kScalar);
};

INSTANTIATE_TEST_SUITE_P(All, MatMulTest, testing::Range(0, kNumWeightFormats),
                         FormatName);

std::vector<float> DecodedRow(const MatMulCase& product, int64_t row) {
  std::vector<float> w(static_cast<size_t>(product.shape.cols));
  DecodeStoredRow(product.shape.format, product.Row(row), product.shape.cols,
                  w.data());
  return w;
}

float BiasOf(const MatMulCase& product, int64_t row) {
  return product.bias.empty() ? 0 : product.bias[static_cast<size_t>(row)];
}

TEST_P(MatMulTest, ExactIsAChainOfFusedSteps) {
  std::mt19937 random(kSeed);
  for (const int64_t tokens : {1, 3, 17}) {
    const MatMulCase product(ShapeOf(37, 3, tokens), Spread::kOrdinary,
                             Spread::kOrdinary, random);
    const std::vector<float> y =
        RunMatMul(table_, ComputeMode::kExact, product);
    for (int64_t row = 0; row < product.shape.rows; ++row) {
      const std::vector<float> w = DecodedRow(product, row);
      for (int64_t t = 0; t < tokens; ++t) {
        float sum = 0;
        for (size_t k = 0; k < w.size(); ++k) {
          sum = std::fma(w[k], product.Token(t)[k], sum);
        }
        const float want =
            product.bias.empty() ? sum : sum + BiasOf(product, row);
        ASSERT_EQ(y[static_cast<size_t>(t * (product.shape.rows + 3) + row)],
                  want)
            << "row " << row << " token " << t;
      }
    }
  }
}

// Largest error that rounding activations may cause in one output.
double Tolerance(const MatMulCase& product, const std::vector<float>& w,
                 int64_t token) {
  const float* x = product.Token(token);
  const bool int8 =
      ActivationFormFor(ComputeMode::kFast, product.shape.format) ==
      ActivationForm::kInt8;
  double bound = 0;
  for (size_t k = 0; k < w.size(); ++k) {
    double step = std::abs(x[k]) / 256;
    if (int8) {
      const size_t begin = k / kGroup * kGroup;
      for (size_t i = begin; i < begin + kGroup; ++i) {
        step = std::max<double>(step, std::abs(x[i]) / 254);
      }
    }
    bound += std::abs(w[k]) * step;
  }
  return bound * 1.001 + 1e-5;
}

TEST_P(MatMulTest, FastStaysWithinTheRoundingOfActivations) {
  std::mt19937 random(kSeed);
  double worst = 0;
  for (const int64_t tokens : {1, 5, 33}) {
    const MatMulCase product(ShapeOf(19, 5, tokens), Spread::kOrdinary,
                             Spread::kOrdinary, random);
    const std::vector<float> y = RunMatMul(table_, ComputeMode::kFast, product);
    for (int64_t row = 0; row < product.shape.rows; ++row) {
      const std::vector<float> w = DecodedRow(product, row);
      for (int64_t t = 0; t < tokens; ++t) {
        double sum = BiasOf(product, row);
        for (size_t k = 0; k < w.size(); ++k) {
          sum += static_cast<double>(w[k]) * product.Token(t)[k];
        }
        const double got =
            y[static_cast<size_t>(t * (product.shape.rows + 3) + row)];
        const double bound = Tolerance(product, w, t);
        ASSERT_LE(std::abs(got - sum), bound)
            << "row " << row << " token " << t;
        worst = std::max(worst, std::abs(got - sum) / bound);
      }
    }
  }
  // The bound is not so wide that a lost group would fit in.
  EXPECT_LT(worst, 0.7);
}

TEST_P(MatMulTest, ATokenGivesTheSameBitsInEveryBatch) {
  std::mt19937 random(kSeed);
  const MatMulCase product(ShapeOf(16, 3, 40), Spread::kOrdinary,
                           Spread::kOrdinary, random);
  for (const ComputeMode mode : {ComputeMode::kFast, ComputeMode::kExact}) {
    const std::vector<float> whole = RunMatMul(table_, mode, product);
    for (const int64_t tokens : {1, 2, 16, 17, 33}) {
      MatMulCase part = MatMulCase(product.shape, Spread::kOrdinary,
                                   Spread::kOrdinary, random);
      part.shape.tokens = tokens;
      part.tiles =
          AlignedBytes(NumTiles(16) * TileBytes(format(), product.shape.cols));
      std::memcpy(part.tiles.data(), product.tiles.data(),
                  static_cast<size_t>(TileBytes(format(), product.shape.cols)));
      part.x = product.x;
      part.x_stride = product.x_stride;
      part.row_index = product.row_index;
      part.bias = product.bias;
      const std::vector<float> y = RunMatMul(table_, mode, part);
      ASSERT_EQ(std::memcmp(y.data(), whole.data(), y.size() * sizeof(float)),
                0)
          << tokens << " tokens";
    }
  }
}

TEST_P(MatMulTest, WritesOnlyTheRowsOfTheMatrix) {
  std::mt19937 random(kSeed);
  const MatMulCase product(ShapeOf(21, 1, 4), Spread::kOrdinary,
                           Spread::kOrdinary, random);
  for (const ComputeMode mode : {ComputeMode::kFast, ComputeMode::kExact}) {
    const std::vector<float> y = RunMatMul(table_, mode, product);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i] == kUntouched, i % 24 >= 21) << i;
    }
  }
}

// Packs one token in groups and returns its records.
std::vector<ActivationRecord> PackToken(const std::vector<float>& x) {
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  const int64_t cols = static_cast<int64_t>(x.size());
  AlignedBytes packed(PackedActivationBytes(ActivationForm::kInt8, 1, cols));
  table.pack_activations[static_cast<int>(ActivationForm::kInt8)](
      {.x = x.data(),
       .x_stride = cols,
       .row_index = nullptr,
       .num_tokens = 1,
       .cols = cols,
       .packed = packed.data()},
      0, 1);
  std::vector<ActivationRecord> records((x.size() + 31) / 32);
  std::memcpy(records.data(), packed.data(),
              records.size() * sizeof(ActivationRecord));
  return records;
}

TEST(PackInt8Test, RoundsTiesToEvenAndSumsBothHalves) {
  std::vector<float> x(40);
  x[0] = -127;  // a = 127: scale 1
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[16] = 2.5f;
  x[31] = -3.5f;
  x[39] = 1;  // of a group whose other elements are beyond the end
  const std::vector<ActivationRecord> records = PackToken(x);
  EXPECT_EQ(records[0].d, 1.0f);
  EXPECT_EQ(records[0].q[0], -127);
  EXPECT_EQ(records[0].q[1], 0);
  EXPECT_EQ(records[0].q[2], 2);
  EXPECT_EQ(records[0].q[16], 2);
  EXPECT_EQ(records[0].q[31], -4);
  EXPECT_EQ(records[0].m, 127);
  EXPECT_EQ(records[0].m_float, 127.0f);
  EXPECT_EQ(records[0].m1, 2);
  EXPECT_EQ(records[1].d, 1.0f / 127);
  EXPECT_EQ(records[1].q[7], 127);
  EXPECT_EQ(records[1].m, -127);
  EXPECT_EQ(records[1].m1, 0);
}

TEST(PackInt8Test, TinyGroupsAreZeroAndInfinitePoisonTheGroup) {
  std::vector<float> x(96);
  x[3] = 0x1.fffffep-101f;
  x[32] = -0x1p-100f;
  x[70] = INFINITY;
  const std::vector<ActivationRecord> records = PackToken(x);
  EXPECT_EQ(records[0].d, 0);
  EXPECT_EQ(records[0].q[3], 0);
  EXPECT_EQ(records[1].q[0], -127);
  EXPECT_TRUE(std::isnan(records[2].d));
  EXPECT_EQ(records[2].q[6], 0);
  EXPECT_EQ(records[2].m, 0);
}

TEST(PanelTest, PanelsAreNearlyEqualAndCoverAllTokens) {
  for (int64_t tokens = 1; tokens < 200; ++tokens) {
    const int64_t panels = NumPanels(tokens);
    EXPECT_EQ(PanelBegin(tokens, 0), 0);
    EXPECT_EQ(PanelBegin(tokens, panels), tokens);
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t size =
          PanelBegin(tokens, panel + 1) - PanelBegin(tokens, panel);
      EXPECT_GE(size, tokens / panels);
      EXPECT_LE(size, (tokens + panels - 1) / panels);
      EXPECT_LE(size, kMaxPanelTokens);
    }
  }
}

// Hand-written: one row, one group, each rule of a product.
TEST(ProductRuleTest, FollowsTheWrittenFormula) {
  std::vector<float> x(256);
  x[0] = 127;
  x[1] = -2;
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  std::mt19937 random(kSeed);
  MatMulCase q4_1({WeightFormat::kQ4_1, 1, 32, 1, false}, Spread::kOrdinary,
                  Spread::kOrdinary, random);
  std::vector<std::byte> stored(20);
  StoreBytes<uint16_t>(0x3800, &stored[0]);  // d = 0.5
  StoreBytes<uint16_t>(0xbc00, &stored[2]);  // m = -1
  stored[4] = std::byte{0x03};
  stored[5] = std::byte{0x0f};
  PackTile(q4_1.shape.format, stored.data(), 20, 1, 32, q4_1.tiles.data());
  q4_1.x = x;
  q4_1.row_index.clear();
  // I = 3 * 127 - 15 * 2 = 351, m = -125, wm = 1.
  EXPECT_EQ(RunMatMul(table, ComputeMode::kFast, q4_1)[0], 0.5f * 351 - 125);

  MatMulCase q6_k({WeightFormat::kQ6_K, 1, 256, 1, false}, Spread::kOrdinary,
                  Spread::kOrdinary, random);
  stored.assign(210, std::byte{0});
  for (size_t i = 128; i < 192; ++i) {
    stored[i] = std::byte{0xaa};  // all codes 32: value 0
  }
  stored[0] = std::byte{0x05};                 // element 0: 5
  stored[16] = std::byte{0x01};                // element 16: 1
  stored[192] = std::byte{0xfe};               // scale -2
  stored[193] = std::byte{3};                  // scale 3
  StoreBytes<uint16_t>(0x4000, &stored[208]);  // d = 2
  PackTile(q6_k.shape.format, stored.data(), 210, 1, 256, q6_k.tiles.data());
  q6_k.x = x;
  q6_k.x[16] = 10;
  q6_k.row_index.clear();
  EXPECT_EQ(RunMatMul(table, ComputeMode::kFast, q6_k)[0],
            2 * -2 * 5 * 127 + 2 * 3 * 10);

  MatMulCase q2_k({WeightFormat::kQ2_K, 1, 256, 1, false}, Spread::kOrdinary,
                  Spread::kOrdinary, random);
  stored.assign(84, std::byte{0});
  stored[0] = std::byte{0x25};                // scale 5, minimum 2
  stored[1] = std::byte{0x1f};                // scale 15, minimum 1
  stored[16] = std::byte{0x03};               // element 0: 3
  stored[32] = std::byte{0x02};               // element 16: 2
  StoreBytes<uint16_t>(0x4000, &stored[80]);  // d = 2
  StoreBytes<uint16_t>(0x3800, &stored[82]);  // dmin = 0.5
  PackTile(q2_k.shape.format, stored.data(), 84, 1, 256, q2_k.tiles.data());
  q2_k.x = q6_k.x;
  q2_k.row_index.clear();
  EXPECT_EQ(RunMatMul(table, ComputeMode::kFast, q2_k)[0],
            2 * 5 * 3 * 127 + 2 * 15 * 2 * 10 - 0.5f * 2 * 125 - 0.5f * 10);
}

// The other formulas of w and the largest integer of all.
TEST(ProductRuleTest, ZeroPointsTablesAndUnsignedBytes) {
  std::vector<float> x(32, 127);
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  std::mt19937 random(kSeed);
  const auto run = [&](WeightFormat format,
                       const std::vector<std::byte>& stored) {
    MatMulCase product({format, 1, 32, 1, false}, Spread::kOrdinary,
                       Spread::kOrdinary, random);
    PackTile(format, stored.data(), 0, 1, 32, product.tiles.data());
    product.x = x;
    product.row_index.clear();
    return RunMatMul(table, ComputeMode::kFast, product)[0];
  };
  std::vector<std::byte> mlx8(36, std::byte{255});
  StoreBytes<uint16_t>(0xbf80, &mlx8[0]);  // scale -1
  StoreBytes<uint16_t>(0x4000, &mlx8[2]);  // bias 2
  EXPECT_EQ(run(WeightFormat::kMlx8, mlx8), 32 * 127 * (-255 + 2));

  std::vector<std::byte> zero(20, std::byte{0xfe});  // 14 and 15 in turn
  StoreBytes<uint16_t>(0x3800, &zero[0]);            // scale 0.5
  StoreBytes<uint16_t>(0x4880, &zero[2]);            // zero point 9
  EXPECT_EQ(run(WeightFormat::kInt4ZeroF16, zero), 16 * 127 * 0.5f * (5 + 6));

  std::vector<std::byte> mxfp4(17, std::byte{0xf5});  // 3 and -6
  mxfp4[0] = std::byte{128};                          // scale 2
  EXPECT_EQ(run(WeightFormat::kMxfp4, mxfp4), 16 * 127 * 2.0f * (3 - 6));
}

}  // namespace
}  // namespace millrace::kernels
