#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"

namespace millrace::kernels {
namespace {

// Reference formulas with libm in double.
std::vector<double> BaseFrequencies(int64_t r, double theta) {
  std::vector<double> f;
  for (int64_t i = 0; i < r / 2; ++i) {
    f.push_back(std::pow(
        theta, -2.0 * static_cast<double>(i) / static_cast<double>(r)));
  }
  return f;
}

std::vector<double> Frequencies(const RopeParams& params,
                                int64_t prompt_tokens = 0) {
  std::vector<double> f(params.rotary_dims / 2);
  RopeFrequencies(params, prompt_tokens, f.data());
  return f;
}

void ExpectClose(const std::vector<double>& got,
                 const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i] / want[i], 1.0, 1e-14) << i;
  }
}

// Unscaled and linear frequencies equal libm's to 1e-14 for the bases in use.
TEST(RopeFrequencies, PlainAndLinear) {
  for (const double theta : {10000.0, 100000.0, 500000.0, 1e6, 1e7}) {
    for (const int64_t r : {16, 24, 64, 80, 128}) {
      RopeParams params{.rotary_dims = r, .theta = theta};
      ExpectClose(Frequencies(params), BaseFrequencies(r, theta));
      params.scaling = RopeScaling::kLinear;
      params.factor = 2.5;
      std::vector<double> want = BaseFrequencies(r, theta);
      for (double& f : want) {
        f /= 2.5;
      }
      ExpectClose(Frequencies(params), want);
    }
  }
}

// Dynamic scaling keeps the base up to the trained context and grows it behind.
TEST(RopeFrequencies, Dynamic) {
  const RopeParams params{.rotary_dims = 64,
                          .scaling = RopeScaling::kDynamic,
                          .factor = 2,
                          .original_context = 2048};
  ExpectClose(Frequencies(params, 2048), BaseFrequencies(64, 10000));
  const double theta = 10000 * std::pow(2.0 * 5000 / 2048 - 1.0, 64.0 / 62.0);
  ExpectClose(Frequencies(params, 5000), BaseFrequencies(64, theta));
}

// The three ranges of Llama 3: high frequencies kept, low ones divided, a blend
// between; all three occur with the published parameters.
TEST(RopeFrequencies, Llama3) {
  const RopeParams params{.rotary_dims = 128,
                          .theta = 500000,
                          .scaling = RopeScaling::kLlama3,
                          .factor = 8,
                          .low_freq_factor = 1,
                          .high_freq_factor = 4,
                          .original_context = 8192};
  std::vector<double> want = BaseFrequencies(128, 500000);
  int kept = 0;
  int divided = 0;
  for (double& f : want) {
    const double wavelength = 2 * M_PI / f;
    if (wavelength < 8192.0 / 4) {
      ++kept;
    } else if (wavelength > 8192.0) {
      f /= 8;
      ++divided;
    } else {
      const double s = (8192.0 / wavelength - 1) / 3;
      f = (1 - s) * f / 8 + s * f;
    }
  }
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(divided, 29);
  ExpectClose(Frequencies(params), want);
}

// YaRN fades between floor and ceiling of the two rotation counts, or between
// the counts themselves when they are not truncated.
TEST(RopeFrequencies, Yarn) {
  for (const bool truncate : {true, false}) {
    const RopeParams params{.rotary_dims = 128,
                            .theta = 1e6,
                            .scaling = RopeScaling::kYarn,
                            .factor = 4,
                            .original_context = 32768,
                            .truncate = truncate};
    const auto index = [](double b) {
      return 128 * std::log(32768 / (2 * M_PI * b)) / (2 * std::log(1e6));
    };
    double low = index(32);
    double high = index(1);
    if (truncate) {
      low = std::floor(low);
      high = std::ceil(high);
      EXPECT_EQ(low, 23);
      EXPECT_EQ(high, 40);
    }
    std::vector<double> want = BaseFrequencies(128, 1e6);
    for (size_t i = 0; i < want.size(); ++i) {
      const double ramp = std::min(
          std::max((static_cast<double>(i) - low) / (high - low), 0.0), 1.0);
      want[i] = want[i] / 4 * ramp + want[i] * (1 - ramp);
    }
    ExpectClose(Frequencies(params), want);
  }
}

// Divisors per frequency divide.
TEST(RopeFrequencies, Divisors) {
  const std::vector<float> divisors = {1, 2, 4, 0.5f, 1, 8, 1, 3};
  RopeParams params{.rotary_dims = 16};
  params.divisors = divisors.data();
  std::vector<double> want = BaseFrequencies(16, 10000);
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] /= divisors[i];
  }
  ExpectClose(Frequencies(params), want);
}

// Sines and cosines equal libm's rounded to float within one unit in the last
// place, also at the largest positions and with an attention factor.
TEST(RopeTable, FollowsLibm) {
  const std::vector<double> f = Frequencies({.rotary_dims = 128});
  std::vector<float> cos(64);
  std::vector<float> sin(64);
  for (const int64_t position :
       {0, 1, 2, 3, 7, 100, 1023, 4096, 65537, 1000003, 16777215}) {
    for (const double a : {1.0, 1.1386}) {
      RopeTableRow(f.data(), 64, a, position, cos.data(), sin.data());
      for (size_t i = 0; i < 64; ++i) {
        const double t = static_cast<double>(position) * f[i];
        EXPECT_NEAR(cos[i], a * std::cos(t), 7e-8) << position << " " << i;
        EXPECT_NEAR(sin[i], a * std::sin(t), 7e-8) << position << " " << i;
      }
    }
  }
}

// The rotation turns each pair by its angle and leaves the dimensions behind
// the rotary ones alone, in both arrangements.
TEST(Rope, RotatesPairs) {
  const KernelTable table = BuildKernelTable(Isa::kScalar);
  const std::vector<double> f = Frequencies({.rotary_dims = 8});
  std::vector<float> cos(4);
  std::vector<float> sin(4);
  RopeTableRow(f.data(), 4, 1.0, 3, cos.data(), sin.data());
  for (const bool interleaved : {false, true}) {
    std::vector<float> x(20);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i) - 7.5f;
    }
    const std::vector<float> before = x;
    table.rope({.x = x.data(),
                .num_heads = 2,
                .head_dim = 10,
                .rotary_dims = 8,
                .interleaved = interleaved,
                .cos = cos.data(),
                .sin = sin.data()});
    for (size_t head = 0; head < 2; ++head) {
      for (size_t i = 0; i < 4; ++i) {
        const size_t a = head * 10 + (interleaved ? 2 * i : i);
        const size_t b = a + (interleaved ? 1 : 4);
        const double angle = 3 * f[i];
        EXPECT_NEAR(x[a],
                    before[a] * std::cos(angle) - before[b] * std::sin(angle),
                    1e-5);
        EXPECT_NEAR(x[b],
                    before[a] * std::sin(angle) + before[b] * std::cos(angle),
                    1e-5);
      }
      EXPECT_EQ(x[head * 10 + 8], before[head * 10 + 8]);
      EXPECT_EQ(x[head * 10 + 9], before[head * 10 + 9]);
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
