#include "coordinator/simulation/samples.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

TEST(Samples, NoneIsZero) {
  Samples samples;
  EXPECT_EQ(samples.Mean(), 0);
  EXPECT_EQ(samples.Deviation(), 0);
  EXPECT_EQ(samples.Percentile(99), 0);
}

// numpy.percentile([1, 2, 3, 10], 50) = 2.5, 90: 7.9; numpy.std = 3.5355...
TEST(Samples, AsNumpyHasThem) {
  Samples samples;
  for (const double value : {10.0, 1.0, 3.0, 2.0}) {
    samples.Add(value);
  }
  EXPECT_EQ(samples.Mean(), 4);
  EXPECT_NEAR(samples.Deviation(), std::sqrt(12.5), 1e-12);
  EXPECT_EQ(samples.Percentile(50), 2.5);
  EXPECT_NEAR(samples.Percentile(90), 7.9, 1e-12);
  EXPECT_EQ(samples.Percentile(0), 1);
  EXPECT_EQ(samples.Percentile(100), 10);
  samples.Add(0.5);  // after having been sorted
  EXPECT_EQ(samples.Percentile(0), 0.5);
}

// Beyond what is kept: percentiles within 0.1 % over twelve decades, mean and
// deviation as before, and equal values stay what they are.
TEST(Samples, BucketsAreNear) {
  std::mt19937_64 random(7);
  Samples kept;
  Samples counted(100);
  for (int i = 0; i < 20000; ++i) {
    const double value =
        std::exp(static_cast<double>(random() % 28000) / 1000 - 20);
    kept.Add(value);
    counted.Add(value);
  }
  EXPECT_EQ(kept.Mean(), counted.Mean());
  EXPECT_EQ(kept.Deviation(), counted.Deviation());
  for (const double percent : {0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    EXPECT_NEAR(counted.Percentile(percent) / kept.Percentile(percent), 1, 1e-3)
        << percent;
  }
  Samples equal(1);
  for (const double value : {0.25, 0.25, 0.25, 0.0, 1e300}) {
    equal.Add(value);
  }
  EXPECT_EQ(equal.Percentile(50), 0.25);
  EXPECT_EQ(equal.Percentile(0), 0);
  EXPECT_EQ(equal.Percentile(100), 1e300);
}

}  // namespace
}  // namespace millrace::coordinator
