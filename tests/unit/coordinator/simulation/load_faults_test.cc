#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/coordinator/simulation/simulated_cases.h"

namespace millrace::coordinator {
namespace {

Fault At(double seconds, FaultKind kind, int64_t node, int64_t other = -1,
         double factor = 1) {
  return Fault{.at = absl::Seconds(seconds),
               .kind = kind,
               .node = node,
               .other = other,
               .factor = factor};
}

// A lost node ends what runs; what waits, and what comes once it is back, is
// served. One slot: request 1 runs, 2 and 3 wait, 4 comes while it is away.
TEST(LoadFaults, ALostNodeEndsWhatRuns) {
  SimulatedPipeline pipeline = PipelineOf({0.001, 0.001});
  pipeline.nodes[0].slots = 1;
  LoadOptions options = OpenLoad(0, 0, 0, 0);
  options.workload.requests = 5;
  for (const double at : {0.0, 0.0, 0.01, 0.15, 0.3}) {
    options.workload.arrivals.trace.push_back(
        {.at = absl::Seconds(at), .input_tokens = 1, .output_tokens = 40});
  }
  options.faults = {At(0.05, FaultKind::kLost, 1),
                    At(0.2, FaultKind::kBack, 1)};
  const LoadReport report = Play(pipeline, options);
  EXPECT_EQ(report.lost, 1);
  EXPECT_EQ(report.refused, 1);
  EXPECT_EQ(report.completed, 3);
  EXPECT_NE(report.first_error.find("node 'n1' was lost"), std::string::npos);
}

// Shorter than its lease, a stall is a pause and nothing else: the answer is
// late by just that, and nothing computes meanwhile.
TEST(LoadFaults, AShortStallIsAPause) {
  const SimulatedPipeline pipeline = PipelineOf({0.010, 0.010});
  LoadOptions options = OpenLoad(1, 1, 1, 10);
  const LoadReport calm = Play(pipeline, options);
  for (const double at : {0.004, 0.0146, 0.020}) {
    options.faults = {At(at, FaultKind::kStalled, 0),
                      At(at + 1.5, FaultKind::kBack, 0)};
    LoadReport report = Play(pipeline, options);
    EXPECT_EQ(report.completed, 1);
    // While the other node computes, the stalled one loses less.
    const double late = report.e2el.Mean() - calm.e2el.Mean();
    EXPECT_LE(late, 1.5 + 1e-8) << at;
    EXPECT_GE(late, 1.5 - 0.0101) << at;
    EXPECT_NEAR(
        absl::ToDoubleSeconds(report.duration) * report.nodes[0].busy_share,
        absl::ToDoubleSeconds(calm.duration) * calm.nodes[0].busy_share, 1e-6);
  }
  // In the middle of a pass exactly as long as the stall.
  options.faults = {At(0.004, FaultKind::kStalled, 0),
                    At(1.504, FaultKind::kBack, 0)};
  EXPECT_NEAR(Play(pipeline, options).e2el.Mean(), calm.e2el.Mean() + 1.5,
              1e-8);
}

// Two stalls within one pass add up.
TEST(LoadFaults, StallsAddUp) {
  const SimulatedPipeline pipeline = PipelineOf({0.010});
  LoadOptions options = OpenLoad(1, 1, 1, 1);
  options.faults = {
      At(0.002, FaultKind::kStalled, 0), At(0.004, FaultKind::kBack, 0),
      At(0.005, FaultKind::kStalled, 0), At(1.005, FaultKind::kBack, 0)};
  EXPECT_NEAR(Play(pipeline, options).ttft.Mean(), 0.010001 + 1.002, 1e-8);
}

// A longer one is found out when the lease ends, like a lost node.
TEST(LoadFaults, ALongStallLosesTheEpoch) {
  const SimulatedPipeline pipeline = PipelineOf({0.010, 0.010});
  LoadOptions options = OpenLoad(1, 1, 1, 10);
  options.workload.arrivals.trace = {
      {.at = {}, .input_tokens = 1, .output_tokens = 10},
      {.at = absl::Seconds(3.5), .input_tokens = 1, .output_tokens = 10},
      {.at = absl::Seconds(5), .input_tokens = 1, .output_tokens = 10}};
  options.workload.requests = 3;
  options.faults = {At(0.05, FaultKind::kStalled, 1),
                    At(4, FaultKind::kBack, 1)};
  LoadReport report = Play(pipeline, options);
  EXPECT_EQ(report.lost, 1);
  EXPECT_EQ(report.refused, 1);
  EXPECT_EQ(report.completed, 1);
  EXPECT_NE(report.first_error.find("not been heard of"), std::string::npos);
}

// A slow node takes longer from its next pass on, until it is back.
TEST(LoadFaults, SlowIsAFactor) {
  const SimulatedPipeline pipeline = PipelineOf({0.010});
  LoadOptions options = OpenLoad(1, 1, 1, 100);
  options.faults = {At(0, FaultKind::kSlow, 0, -1, 3),
                    At(0.5, FaultKind::kBack, 0)};
  const LoadReport report = Play(pipeline, options);
  // Passes of 30.003 ms begin at 0 to 0.48 s: 17 of them.
  EXPECT_NEAR(report.e2el.Mean(), 17 * 0.030003 + 83 * 0.010001, 1e-6);
}

// A slow link is busy for longer, both ways; a cut one ends the epoch.
TEST(LoadFaults, LinksAreSlowOrCut) {
  SimulatedPipeline pipeline = PipelineOf({0.001, 0.001});
  pipeline.hops[0].row_s = 0.001;
  LoadOptions options = OpenLoad(1, 1, 1, 100);
  options.faults = {At(0, FaultKind::kSlow, 1, 0, 5)};
  EXPECT_NEAR(Play(pipeline, options).tpot.Mean(), 0.002002 + 0.005, 1e-7);

  options.faults = {At(0.1, FaultKind::kCut, 1, 0),
                    At(0.2, FaultKind::kCut, 0, 1),
                    At(0.3, FaultKind::kBack, 0, 1)};
  options.workload.requests = 2;
  options.workload.arrivals.rate = 1;
  options.workload.seed = 3;
  const LoadReport report = Play(pipeline, options);
  EXPECT_EQ(report.lost, 1);
  EXPECT_EQ(report.completed + report.refused, 1);
}

// Whatever fails and comes back while many requests run and wait, each ends
// once, and a client that was refused comes again: all are sent.
TEST(LoadFaults, EveryRequestEndsOnce) {
  SimulatedPipeline pipeline = PipelineOf({0.004, 0.006, 0.003});
  pipeline.nodes[2].slots = 24;
  for (const bool closed : {false, true}) {
    LoadOptions options =
        closed ? ClosedLoad(50, 2000, 80, 40) : OpenLoad(60, 2000, 80, 40);
    for (int64_t i = 0; i < 12; ++i) {
      const double at = 2.5 * static_cast<double>(i) + 0.3;
      const auto kind = static_cast<FaultKind>(i % 4);
      const int64_t other = kind == FaultKind::kCut ? 1 : -1;
      const int64_t node = other < 0 ? i % 3 : 2;
      options.faults.push_back(At(at, kind, node, other, 4));
      options.faults.push_back(
          At(at + 0.4 * static_cast<double>(i), FaultKind::kBack, node, other));
    }
    std::stable_sort(
        options.faults.begin(), options.faults.end(),
        [](const Fault& a, const Fault& b) { return a.at < b.at; });
    LoadReport report = Play(pipeline, options);
    EXPECT_EQ(report.requests, 2000);
    EXPECT_EQ(report.completed + report.failed(), 2000);
    EXPECT_GT(report.lost, 20);
    EXPECT_GT(report.refused, 0);
    EXPECT_GT(report.completed, 500);
    EXPECT_EQ(report.output_tokens, 40 * report.completed);
    EXPECT_LE(report.nodes[1].busy_share, 1);
    const LoadReport again = Play(pipeline, options);
    EXPECT_EQ(again.completed, report.completed);
    EXPECT_EQ(again.duration, report.duration);
  }
}

// A pipeline that never comes back: who waits is told so in the end.
TEST(LoadFaults, NothingWaitsForever) {
  SimulatedPipeline pipeline = PipelineOf({0.001});
  pipeline.nodes[0].slots = 1;
  LoadOptions options = OpenLoad(1e6, 20, 1, 1000);
  options.faults = {At(0.1, FaultKind::kLost, 0)};
  const LoadReport report = Play(pipeline, options);
  EXPECT_EQ(report.lost, 1);
  EXPECT_EQ(report.expired, 19);
}

}  // namespace
}  // namespace millrace::coordinator
