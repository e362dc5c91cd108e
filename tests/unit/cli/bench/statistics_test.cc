// Medians and decode rates of times that are made up; provoked by sequences
// that begin and end at different times.
#include "cli/bench/statistics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

using ::testing::DoubleNear;

SequenceTimes Times(std::vector<int> milliseconds) {
  SequenceTimes times;
  for (const int ms : milliseconds) {
    times.tokens.push_back(absl::Milliseconds(ms));
  }
  return times;
}

TEST(StatisticsTest, MedianOfOddAndEvenNumbers) {
  EXPECT_EQ(Median(std::vector<double>{}), 0);
  EXPECT_EQ(Median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(Median(std::vector<double>{8, 1, 2, 4}), 3);
}

TEST(StatisticsTest, NoMedianWhereANumberIsMissing) {
  using Values = std::vector<std::optional<double>>;
  EXPECT_EQ(Median(Values{1.0, 5.0, 2.0}), 2.0);
  EXPECT_EQ(Median(Values{1.0, std::nullopt}), std::nullopt);
  EXPECT_EQ(Median(Values{}), std::nullopt);
}

TEST(StatisticsTest, OneSequenceCountsTokensAfterItsFirst) {
  const SequenceTimes one = Times({100, 110, 120, 140});
  const DecodeRate rate = CommonDecodeRate({&one, 1});
  EXPECT_EQ(rate.tokens, 3);
  EXPECT_THAT(rate.tokens_per_s, DoubleNear(75, 1e-9));
  EXPECT_THAT(rate.token_seconds, DoubleNear(0.04 / 3, 1e-9));
}

// What the first sequence did alone, and what the second did once the first
// had ended, was at another speed and does not count.
TEST(StatisticsTest, OnlyTheTimeInWhichAllDecodeCounts) {
  const std::vector<SequenceTimes> both = {
      Times({0, 1, 2, 3, 100, 120, 140, 160}),
      Times({100, 121, 141, 161, 162, 163})};
  const DecodeRate rate = CommonDecodeRate(both);
  EXPECT_EQ(rate.tokens, 3 + 2);
  EXPECT_THAT(rate.tokens_per_s, DoubleNear(3 / 0.06 + 2 / 0.041, 1e-9));
  EXPECT_THAT(rate.token_seconds, DoubleNear(0.101 / 5, 1e-9));
}

TEST(StatisticsTest, NothingWhereSequencesDoNotOverlap) {
  const std::vector<SequenceTimes> apart = {Times({0, 1, 2}),
                                            Times({10, 11, 12})};
  EXPECT_EQ(CommonDecodeRate(apart).tokens, 0);
  EXPECT_EQ(CommonDecodeRate(apart).tokens_per_s, 0);
  const SequenceTimes single = Times({5});
  EXPECT_EQ(CommonDecodeRate({&single, 1}).tokens, 0);
  const SequenceTimes none;
  EXPECT_EQ(CommonDecodeRate({&none, 1}).tokens, 0);
}

TEST(SpreadTest, MedianLowestAndHighest) {
  const Spread spread = SpreadOf({4, 1, 3, 2, 5});
  EXPECT_EQ(spread.median, 3);
  EXPECT_EQ(spread.low, 1);
  EXPECT_EQ(spread.high, 5);
  EXPECT_EQ(spread.rounds, 5);
  EXPECT_DOUBLE_EQ(spread.Share(), 2.0 / 3);
  EXPECT_EQ(SpreadOf({}).rounds, 0);
  EXPECT_EQ(SpreadOf({}).Share(), 0);
}

}  // namespace
}  // namespace millrace::cli
