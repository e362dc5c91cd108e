#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"

namespace millrace::kernels {
namespace {

std::vector<float> RandomVector(int64_t n, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> x(n);
  std::generate(x.begin(), x.end(), [&] { return normal(random); });
  return x;
}

// RMSNorm equals the textbook formula in double, in place and with strides;
// rows outside the range stay.
TEST(RmsNorm, FollowsDoublePrecision) {
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  for (const int64_t n : {1, 15, 16, 17, 576, 2048}) {
    std::vector<float> x = RandomVector(3 * (n + 3), 2.0f, 1);
    const std::vector<float> before = x;
    const std::vector<float> g = RandomVector(n, 1.0f, 2);
    table.rms_norm({.x = x.data(),
                    .x_stride = n + 3,
                    .g = g.data(),
                    .eps = 1e-5f,
                    .n = n,
                    .y = x.data(),
                    .y_stride = n + 3},
                   1, 3);
    for (int64_t row = 0; row < 3; ++row) {
      const float* in = before.data() + row * (n + 3);
      const float* out = x.data() + row * (n + 3);
      double squares = 0;
      for (int64_t i = 0; i < n; ++i) {
        squares += static_cast<double>(in[i]) * in[i];
      }
      const double r = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
      for (int64_t i = 0; i < n; ++i) {
        const double want = row == 0 ? in[i] : in[i] * r * g[i];
        ASSERT_NEAR(out[i], want, 1e-6 * std::abs(want)) << n << " " << i;
      }
    }
  }
}

// SwiGLU, addition and the weighted addition equal their formulas.
TEST(Elementwise, FollowDoublePrecision) {
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  const int64_t n = 100;
  const std::vector<float> gate = RandomVector(n, 3.0f, 3);
  const std::vector<float> up = RandomVector(n, 1.0f, 4);
  std::vector<float> y(n);
  table.swiglu({.gate = gate.data(),
                .gate_stride = n,
                .up = up.data(),
                .up_stride = n,
                .n = n,
                .y = y.data(),
                .y_stride = n},
               0, 1);
  for (int64_t i = 0; i < n; ++i) {
    const double silu = gate[i] / (1 + std::exp(-static_cast<double>(gate[i])));
    ASSERT_NEAR(y[i], silu * up[i], 3e-7 * std::abs(silu * up[i]));
  }
  std::vector<float> sum = up;
  table.add(gate.data(), sum.data(), n);
  std::vector<float> weighted = up;
  table.axpy(0.3f, gate.data(), weighted.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(sum[i], up[i] + gate[i]);
    ASSERT_EQ(weighted[i], std::fma(0.3f, gate[i], up[i]));
  }
}

struct Routed {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Routed Route(const std::vector<float>& logits, int64_t k, bool renormalise) {
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  const auto n = static_cast<int64_t>(logits.size());
  Routed routed{std::vector<int32_t>(k), std::vector<float>(k)};
  std::vector<float> scratch(n);
  table.softmax_router({.logits = logits.data(),
                        .logits_stride = n,
                        .num_experts = n,
                        .num_chosen = k,
                        .renormalise = renormalise,
                        .experts = routed.experts.data(),
                        .weights = routed.weights.data(),
                        .scratch = scratch.data()},
                       0, 1);
  return routed;
}

// The router picks the largest probabilities in order and weighs by softmax in
// double.
TEST(SoftmaxRouter, PicksLargestInOrder) {
  const std::vector<float> logits = RandomVector(128, 2.0f, 5);
  std::vector<int32_t> order(128);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  double all = 0;
  for (const float logit : logits) {
    all += std::exp(static_cast<double>(logit));
  }
  double chosen = 0;
  for (int j = 0; j < 8; ++j) {
    chosen += std::exp(static_cast<double>(logits[order[j]]));
  }
  for (const bool renormalise : {false, true}) {
    const Routed got = Route(logits, 8, renormalise);
    for (int j = 0; j < 8; ++j) {
      EXPECT_EQ(got.experts[j], order[j]);
      const double want = std::exp(static_cast<double>(logits[order[j]])) /
                          (renormalise ? chosen : all);
      EXPECT_NEAR(got.weights[j], want, 1e-6 * want);
    }
  }
}

// Ties go to the lower index; with a NaN all are NaN and the indices rise.
TEST(SoftmaxRouter, TiesAndNan) {
  EXPECT_EQ(Route({1, 3, 3, 0, 3}, 4, true).experts,
            (std::vector<int32_t>{1, 2, 4, 0}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Routed got = Route({1, nan, 7, 2}, 3, true);
  EXPECT_EQ(got.experts, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_TRUE(std::isnan(got.weights[0]));
  EXPECT_EQ(Route({2, 1}, 2, false).experts, (std::vector<int32_t>{0, 1}));
}

// The maximum of a row is its largest element, NaN when there is one; the sums
// of blocks of 1024 follow double precision.
TEST(SamplingPasses, MaximumAndSums) {
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  std::vector<float> x = RandomVector(2500, 3.0f, 6);
  const float max = table.sampling.row_max(x.data(), 2500);
  EXPECT_EQ(max, *std::max_element(x.begin(), x.end()));
  std::vector<float> e(2500);
  std::vector<float> sums(3);
  std::vector<float> sums_alone(3);
  table.sampling.exp_block_sums(x.data(), max, 2500, e.data(), sums.data());
  table.sampling.exp_block_sums(x.data(), max, 2500, nullptr,
                                sums_alone.data());
  EXPECT_EQ(sums, sums_alone);
  for (int64_t block = 0; block < 3; ++block) {
    double want = 0;
    for (int64_t i = block * 1024;
         i < std::min<int64_t>(block * 1024 + 1024, 2500); ++i) {
      want += std::exp(static_cast<double>(x[i]) - max);
      ASSERT_NEAR(e[i], std::exp(static_cast<double>(x[i]) - max), 1e-6);
    }
    EXPECT_NEAR(sums[block], want, 1e-5 * want);
  }
  x[1234] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(table.sampling.row_max(x.data(), 2500)));
}

}  // namespace
}  // namespace millrace::kernels
