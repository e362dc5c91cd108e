#include "coordinator/simulation/rate_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/unit/coordinator/simulation/simulated_cases.h"

namespace millrace::coordinator {
namespace {

// Whatever the limit and the start, the answer meets it and is within 1 %.
TEST(FindRate, IsWithinOnePercent) {
  for (const double limit : {3e-6, 0.7, 1.0, 12.345, 4e5}) {
    for (const double start : {0.01, 1.0, 1000.0}) {
      double best = 0;
      int runs = 0;
      const auto rate =
          FindRate(start, [&](double tried) -> absl::StatusOr<RateTrial> {
            ++runs;
            best = tried <= limit ? std::max(best, tried) : best;
            return RateTrial{.meets = tried <= limit};
          });
      ASSERT_TRUE(rate.ok() && rate->has_value());
      EXPECT_LE(**rate, limit);
      EXPECT_GE(**rate * 1.01, limit);
      EXPECT_EQ(**rate, best);  // its run is among those that were played
      EXPECT_LT(runs, 50);
    }
  }
}

TEST(FindRate, NoneAndAll) {
  const auto none = FindRate(
      1, [](double) -> absl::StatusOr<RateTrial> { return RateTrial{}; });
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  const auto all = FindRate(1, [](double rate) -> absl::StatusOr<RateTrial> {
    return RateTrial{.meets = true, .at_once = rate > 100};
  });
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(**all, 128);
  const auto broken = FindRate(1, [](double rate) -> absl::StatusOr<RateTrial> {
    if (rate > 8) {
      return absl::CancelledError("stopped");
    }
    return RateTrial{.meets = true};
  });
  EXPECT_TRUE(absl::IsCancelled(broken.status()));
}

// A plan that takes no time keeps every limit at every rate.
TEST(FindRate, EndsWhereNoRateIsTooHigh) {
  for (const double start :
       {0.0, 1e-300, 1.0, 1e300, std::numeric_limits<double>::infinity()}) {
    const auto rate = FindRate(start, [](double) -> absl::StatusOr<RateTrial> {
      return RateTrial{.meets = true};
    });
    ASSERT_TRUE(rate.ok() && rate->has_value());
    EXPECT_TRUE(std::isfinite(**rate));
  }
}

// A pipeline that gives R answers a second at most keeps a limit on their time
// up to nearly R, and not beyond.
TEST(FindRate, FindsTheCapacityOfAPipeline) {
  const SimulatedPipeline pipeline = PipelineOf({0.010});
  const auto play = [&](double rate) -> absl::StatusOr<RateTrial> {
    LoadOptions options = OpenLoad(rate, 2000, 1, 10);
    options.limits.tpot = absl::Milliseconds(10.2);
    LoadReport report = Play(pipeline, options);
    return RateTrial{.meets = report.MeetsLimits(),
                     .at_once = report.arriving * 100 < report.duration};
  };
  const auto rate = FindRate(1, play);
  ASSERT_TRUE(rate.ok() && rate->has_value());
  // A pass takes 10 ms and a microsecond a row, so that 10.2 ms are some 200
  // rows, which is 20 answers of 10 tokens every 10 passes at the least.
  EXPECT_GT(**rate, 200);
  EXPECT_TRUE(play(**rate)->meets);
  EXPECT_FALSE(play(**rate * 1.03)->meets);
}

}  // namespace
}  // namespace millrace::coordinator
