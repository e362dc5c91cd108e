#include "coordinator/simulation/workload.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

Workload RateOf(double rate, double burstiness, int64_t requests) {
  Workload workload;
  workload.arrivals.rate = rate;
  workload.arrivals.burstiness = burstiness;
  workload.requests = requests;
  workload.input = {.tokens = 100, .spread = 0.5};
  workload.output = {.tokens = 7, .spread = 0};
  workload.seed = 11;
  return workload;
}

std::vector<double> Gaps(const Workload& workload) {
  RequestSource source(workload);
  std::vector<double> gaps;
  double last = absl::ToDoubleSeconds(source.Next()->at);
  EXPECT_EQ(last, 0);
  while (const auto entry = source.Next()) {
    const double at = absl::ToDoubleSeconds(entry->at);
    EXPECT_GE(at, last);
    gaps.push_back(at - last);
    last = at;
  }
  return gaps;
}

// A Gamma of shape k and mean 1/rate has variance 1 / (k rate^2).
TEST(RequestSource, GapsHaveTheirMeanAndVariance) {
  for (const double burstiness : {0.25, 1.0, 4.0, 1e6}) {
    const std::vector<double> gaps = Gaps(RateOf(50, burstiness, 200001));
    double sum = 0;
    double squares = 0;
    for (const double gap : gaps) {
      sum += gap;
      squares += (gap - 0.02) * (gap - 0.02);
    }
    const auto count = static_cast<double>(gaps.size());
    EXPECT_NEAR(sum / count, 0.02, 0.02 * 0.02) << burstiness;
    const double variance = 0.02 * 0.02 / burstiness;
    EXPECT_NEAR(squares / count / variance, 1, 0.05) << burstiness;
  }
}

// Another rate stretches the same load: a search sees one load at each rate.
TEST(RequestSource, ARateScalesTheSameLoad) {
  const Workload slow = RateOf(1, 0.5, 100);
  const Workload fast = RateOf(4, 0.5, 100);
  RequestSource a(slow);
  RequestSource b(fast);
  while (const auto one = a.Next()) {
    const auto other = b.Next();
    EXPECT_NEAR(absl::ToDoubleSeconds(one->at),
                4 * absl::ToDoubleSeconds(other->at), 1e-8);
    EXPECT_EQ(one->input_tokens, other->input_tokens);
    EXPECT_EQ(one->output_tokens, other->output_tokens);
  }
  EXPECT_FALSE(b.Next().has_value());
}

// All lengths of the range occur, and no others; one token at least.
TEST(RequestSource, LengthsFillTheirRange) {
  Workload workload = RateOf(1, 1, 20000);
  workload.output = {.tokens = 2, .spread = 1};
  std::vector<int> inputs(200);
  std::vector<int> outputs(10);
  RequestSource source(workload);
  while (const auto entry = source.Next()) {
    ++inputs.at(static_cast<size_t>(entry->input_tokens));
    ++outputs.at(static_cast<size_t>(entry->output_tokens));
  }
  for (size_t length = 0; length < inputs.size(); ++length) {
    EXPECT_EQ(inputs[length] > 0, length >= 50 && length <= 150) << length;
  }
  for (size_t length = 0; length < outputs.size(); ++length) {
    EXPECT_EQ(outputs[length] > 0, length >= 1 && length <= 4) << length;
  }
}

TEST(RequestSource, ATraceIsPlayedAsItIs) {
  Workload workload;
  workload.arrivals.trace = {
      {.at = {}, .input_tokens = 5, .output_tokens = 6},
      {.at = absl::Seconds(2), .input_tokens = 7, .output_tokens = 8}};
  workload.requests = 100;
  RequestSource source(workload);
  EXPECT_EQ(source.num_left(), 2);
  EXPECT_EQ(source.Next()->input_tokens, 5);
  EXPECT_EQ(source.Next()->at, absl::Seconds(2));
  EXPECT_FALSE(source.Next().has_value());
  workload.requests = 1;
  EXPECT_EQ(RequestSource(workload).num_left(), 1);
}

}  // namespace
}  // namespace millrace::coordinator
