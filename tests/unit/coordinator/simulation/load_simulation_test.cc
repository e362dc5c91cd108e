#include "coordinator/simulation/load_simulation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/coordinator/simulation/simulated_cases.h"

namespace millrace::coordinator {
namespace {

// The clock counts quarters of a nanosecond; a loop adds a few of them.
constexpr double kTick = 5e-9;

// One stage, one request: a prompt of 10 rows in one pass of 5 ms + 10 us, then
// passes of one row. Nothing else may take time.
TEST(LoadSimulation, OneRequestTakesItsPasses) {
  LoadReport report = Play(PipelineOf({0.005}), OpenLoad(1, 1, 10, 6));
  EXPECT_EQ(report.completed, 1);
  EXPECT_EQ(report.input_tokens, 10);
  EXPECT_EQ(report.output_tokens, 6);
  EXPECT_NEAR(report.ttft.Mean(), 0.005010, kTick);
  EXPECT_NEAR(report.tpot.Mean(), 0.005001, kTick);
  EXPECT_EQ(report.itl.count(), 5);
  EXPECT_NEAR(report.itl.Percentile(99), 0.005001, kTick);
  EXPECT_NEAR(report.e2el.Mean(), 0.005010 + 5 * 0.005001, 5 * kTick);
  EXPECT_NEAR(absl::ToDoubleSeconds(report.duration), report.e2el.Mean(),
              kTick);
  EXPECT_EQ(report.frames, 6);
  EXPECT_NEAR(report.nodes[0].busy_share, 1, 1e-9);
}

// Three stages and links: a token takes every pass, hop and the way back.
TEST(LoadSimulation, HopsCountOnce) {
  SimulatedPipeline pipeline = PipelineOf({0.003, 0.001, 0.002});
  pipeline.hops[0] = {.row_s = 0.0001, .latency_s = 0.0005};
  pipeline.hops[1] = {.row_s = 0.0002, .latency_s = 0.0003};
  pipeline.return_s = 0.0004;
  LoadReport report = Play(pipeline, OpenLoad(1, 1, 1, 11));
  const double loop = 0.006 + 3e-6 + 0.0003 + 0.0008 + 0.0004;
  EXPECT_NEAR(report.ttft.Mean(), loop, kTick);
  EXPECT_NEAR(report.tpot.Mean(), loop, kTick);
  EXPECT_NEAR(report.nodes[0].busy_share, 0.003001 / loop, 1e-6);
}

// An interleaved route: one node is visited twice and computes one pass at a
// time, so that two micro-batches take turns there.
TEST(LoadSimulation, ANodeOfTwoSegmentsIsOneServer) {
  SimulatedPipeline pipeline = PipelineOf({0.002, 0.001});
  pipeline.segments.push_back(pipeline.segments[0]);
  pipeline.hops.resize(2);
  pipeline.microbatches = 3;
  const LoadReport report = Play(pipeline, ClosedLoad(3, 3, 1, 4001));
  const double cycle = 2 * 0.002001;
  EXPECT_NEAR(report.tpot.Mean(), 3 * cycle, 3 * cycle * 1e-3);
  EXPECT_NEAR(report.nodes[0].busy_share, 1, 1e-3);
  EXPECT_NEAR(report.nodes[1].busy_share, 0.001001 / cycle, 1e-3);
}

// Asymptotic bounds of a closed loop (pipeline theory): N micro-batches of r
// rows in a loop of L with a slowest stage of T give r min(N/L, 1/T) tokens a
// second and max(L, N T) a token.
TEST(LoadSimulation, AClosedLoopMeetsTheBounds) {
  struct Shape {
    std::vector<double> pass_s;
    int64_t microbatches;
    int64_t rows;
    double hop_s;
  };
  const std::vector<Shape> shapes = {
      {{0.004, 0.004, 0.004, 0.004}, 4, 1, 0},  // balanced, full
      {{0.004, 0.004, 0.004, 0.004}, 4, 8, 0},
      {{0.004, 0.004, 0.004, 0.004}, 2, 5, 0},      // half empty
      {{0.004, 0.004, 0.004, 0.004}, 5, 4, 0.001},  // one more hides the hops
      {{0.001, 0.009, 0.002}, 2, 3, 0},             // one slow stage
      {{0.001, 0.009, 0.002}, 6, 3, 0},             // more than fill it
      {{0.002}, 1, 64, 0},
  };
  for (const Shape& shape : shapes) {
    SimulatedPipeline pipeline = PipelineOf(shape.pass_s);
    pipeline.microbatches = shape.microbatches;
    double cycle = 0;
    double loop = 0;
    for (const double pass_s : shape.pass_s) {
      const double pass = pass_s + static_cast<double>(shape.rows) * 1e-6;
      cycle = std::max(cycle, pass);
      loop += pass;
    }
    for (SimulatedHop& hop : pipeline.hops) {
      hop.latency_s = shape.hop_s;
      loop += shape.hop_s;
    }
    const int64_t clients = shape.microbatches * shape.rows;
    constexpr int64_t kTokens = 3000;
    LoadReport report =
        Play(pipeline, ClosedLoad(clients, clients, 1, kTokens));
    const auto microbatches = static_cast<double>(shape.microbatches);
    const double tokens_per_s = static_cast<double>(shape.rows) *
                                std::min(microbatches / loop, 1 / cycle);
    const double tpot = std::max(loop, microbatches * cycle);
    EXPECT_NEAR(report.PerSecond(report.output_tokens) / tokens_per_s, 1, 5e-3)
        << shape.microbatches << " of " << shape.rows;
    EXPECT_NEAR(report.itl.Percentile(50) / tpot, 1, 1e-6)
        << shape.microbatches << " of " << shape.rows;
    EXPECT_NEAR(report.tpot.Mean() / tpot, 1, 5e-3);
  }
}

// M/D/1: Poisson requests of one row each through passes that take no more than
// one row. The mean time in the system at load u is D (1 + u / (2 (1 - u))).
TEST(LoadSimulation, OneRowAPassIsMD1) {
  SimulatedPipeline pipeline = PipelineOf({0.010});
  pipeline.segments[0].row_s = 0;
  pipeline.chunk = 1;
  for (const double load : {0.2, 0.5, 0.8}) {
    const LoadReport report =
        Play(pipeline, OpenLoad(load / 0.010, 200000, 1, 1));
    EXPECT_EQ(report.frames, 200000);
    const double wait = report.ttft.Mean() / 0.010 - 1;
    EXPECT_NEAR(wait / (load / (2 * (1 - load))), 1, 0.05) << load;
    EXPECT_NEAR(report.nodes[0].busy_share / load, 1, 0.01) << load;
  }
}

// Prompts of several pieces fill the stages at once: far less than one after
// the other, and no less than the slowest stage needs for all rows.
TEST(LoadSimulation, PiecesOfAPromptOverlap) {
  SimulatedPipeline pipeline = PipelineOf({0.001, 0.001, 0.001, 0.001});
  for (SimulatedSegment& segment : pipeline.segments) {
    segment.row_s = 1e-4;
  }
  const LoadReport report = Play(pipeline, OpenLoad(1, 1, 4096, 1));
  const double stage = 4096 * 1e-4;
  EXPECT_GT(report.ttft.Mean(), stage);
  EXPECT_LT(report.ttft.Mean(), 1.5 * stage);
}

// What a pass reads of its sequence grows with it, up to a window; a state
// takes as long at any length.
TEST(LoadSimulation, ReadsOfSequencesGrow) {
  SimulatedPipeline pipeline = PipelineOf({0.001, 0.001});
  for (SimulatedSegment& segment : pipeline.segments) {
    segment.row_s = 0;
  }
  pipeline.segments[0].kv = {{.positions_max = 0, .position_s = 1e-5}};
  pipeline.segments[1].kv = {{.positions_max = 20, .position_s = 1e-4}};
  pipeline.segments[1].sequence_s = 0.0005;
  // A prompt of 10 in one pass, then 90 passes of 11 to 100 positions.
  LoadReport report = Play(pipeline, OpenLoad(1, 1, 10, 91));
  const auto pass = [](int64_t length) {
    return 0.0025 + static_cast<double>(length) * 1e-5 +
           static_cast<double>(std::min<int64_t>(20, length)) * 1e-4;
  };
  double decode = 0;
  for (int64_t length = 11; length <= 100; ++length) {
    decode += pass(length);
  }
  EXPECT_NEAR(report.ttft.Mean(), pass(10), kTick);
  EXPECT_NEAR(report.e2el.Mean(), pass(10) + decode, 100 * kTick);
  // Two sequences in one frame read twice as much.
  pipeline.microbatches = 1;
  report = Play(pipeline, ClosedLoad(2, 2, 10, 91));
  EXPECT_NEAR(report.itl.Percentile(100), pass(100) + (pass(100) - 0.002),
              kTick);
}

// The coordinator makes one frame after the other.
TEST(LoadSimulation, TheCoordinatorTakesItsTime) {
  SimulatedPipeline pipeline = PipelineOf({0.001, 0.001});
  for (SimulatedSegment& segment : pipeline.segments) {
    segment.row_s = 0;
  }
  pipeline.coordinator_s = 0.0004;
  LoadReport report = Play(pipeline, OpenLoad(1, 1, 1, 11));
  EXPECT_NEAR(report.tpot.Mean(), 0.0024, kTick);
  // Where it is the slowest it sets the rate.
  pipeline.coordinator_s = 0.003;
  pipeline.microbatches = 4;
  report = Play(pipeline, ClosedLoad(4, 4, 1, 2001));
  EXPECT_NEAR(report.tpot.Mean() / (4 * 0.003), 1, 1e-3);
}

// Experts: r rows read more of them than one, fewer than r times as many.
TEST(LoadSimulation, ExpertsTouchedGrowWithRows) {
  SimulatedPipeline pipeline = PipelineOf({0.001});
  pipeline.segments[0].row_s = 0;
  pipeline.segments[0].experts.push_back(
      {.count = 4, .used = 1, .seconds_per_expert = 0.001});
  EXPECT_NEAR(PassSeconds(pipeline.segments[0], 1), 0.001, 1e-15);
  // Two rows of one in four: 4 (1 - 0.75^2) = 1.75 experts.
  EXPECT_NEAR(PassSeconds(pipeline.segments[0], 2), 0.00175, 1e-15);
  const LoadReport report = Play(pipeline, ClosedLoad(2, 2, 1, 1001));
  EXPECT_NEAR(report.tpot.Mean(), 0.00175, 1e-5);
}

// More than memory holds waits its turn, and all are served in the end.
TEST(LoadSimulation, PoolsBound) {
  SimulatedPipeline pipeline = PipelineOf({0.001, 0.001});
  pipeline.nodes[1].full_blocks = 4;  // 256 positions: two of 128
  LoadReport report = Play(pipeline, ClosedLoad(6, 30, 64, 64));
  EXPECT_EQ(report.completed, 30);
  EXPECT_EQ(report.concurrent_max, 6);
  // Only two run at a time, so that the first of the others waits for a whole
  // answer of 64 tokens.
  EXPECT_GT(report.ttft.Percentile(50), 64 * 0.002);
}

// A request that could never fit, and more than the queue takes.
TEST(LoadSimulation, RefusalsAreCounted) {
  SimulatedPipeline pipeline = PipelineOf({0.001});
  pipeline.context = 100;
  LoadReport report = Play(pipeline, OpenLoad(100, 5, 100, 10));
  EXPECT_EQ(report.refused, 5);
  EXPECT_EQ(report.completed, 0);
  EXPECT_NE(report.first_error.find("context of 100"), std::string::npos);

  pipeline.context = 1000;
  pipeline.nodes[0].slots = 1;
  report = Play(pipeline, OpenLoad(1e9, 1000, 1, 100));
  EXPECT_EQ(report.refused, 1000 - 1 - 256);
  EXPECT_EQ(report.completed, 257);
  EXPECT_FALSE(report.MeetsLimits());
}

// Two runs with one seed are equal to the last bit, another seed differs.
TEST(LoadSimulation, OneSeedOneReport) {
  LoadOptions options = OpenLoad(40, 500, 100, 30);
  options.workload.input.spread = 0.5;
  options.workload.output.spread = 1;
  options.workload.arrivals.burstiness = 0.5;
  const SimulatedPipeline pipeline = PipelineOf({0.002, 0.001, 0.003});
  const auto summary = [&](uint64_t seed) {
    options.workload.seed = seed;
    LoadReport report = Play(pipeline, options);
    return std::vector<double>{report.ttft.Mean(),
                               report.ttft.Percentile(99),
                               report.itl.Deviation(),
                               report.e2el.Percentile(90),
                               absl::ToDoubleSeconds(report.duration),
                               report.nodes[2].busy_share,
                               static_cast<double>(report.output_tokens)};
  };
  EXPECT_EQ(summary(1), summary(1));
  EXPECT_NE(summary(1), summary(2));
}

// Where frames cannot overtake, their whole way is worked out as they enter.
// A fault that changes nothing makes every segment an event of its own: the
// same numbers to the last bit.
TEST(LoadSimulation, TheWholeWayAtOnceIsTheSame) {
  SimulatedPipeline pipeline = PipelineOf({0.002, 0.001, 0.003, 0.001});
  for (SimulatedHop& hop : pipeline.hops) {
    hop = {.row_s = 1e-4, .latency_s = 0.0007};
  }
  pipeline.return_s = 0.0003;
  LoadOptions options = OpenLoad(30, 400, 200, 40);
  options.workload.input.spread = 0.9;
  LoadReport at_once = Play(pipeline, options);
  options.faults.push_back(Fault{});  // node 0 is back
  LoadReport by_events = Play(pipeline, options);
  EXPECT_EQ(at_once.duration, by_events.duration);
  EXPECT_EQ(at_once.frames, by_events.frames);
  EXPECT_EQ(at_once.ttft.Percentile(99), by_events.ttft.Percentile(99));
  EXPECT_EQ(at_once.itl.Mean(), by_events.itl.Mean());
  for (size_t i = 0; i < pipeline.nodes.size(); ++i) {
    EXPECT_EQ(at_once.nodes[i].busy_share, by_events.nodes[i].busy_share);
  }
}

// go_on is asked while a run lasts and ends it.
TEST(LoadSimulation, StopsWhenTold) {
  LoadOptions options = ClosedLoad(1, 100000, 1, 100);
  int64_t asked = 0;
  options.go_on = [&](const LoadProgress& progress) {
    EXPECT_EQ(progress.requests, 100000);
    return ++asked < 3;
  };
  const SimulatedPipeline pipeline = PipelineOf({0.001});
  const auto report = LoadSimulation(pipeline, options).Run();
  EXPECT_TRUE(absl::IsCancelled(report.status()));
  EXPECT_EQ(asked, 3);
}

// Numbers out of range are named, not simulated.
TEST(SimulatedPipeline, ValidatesItsNumbers) {
  EXPECT_TRUE(PipelineOf({0.001, 0.002}).Validate().ok());
  EXPECT_FALSE(SimulatedPipeline{}.Validate().ok());
  for (const double seconds : {-1.0, 1e9, std::nan("")}) {
    SimulatedPipeline pipeline = PipelineOf({0.001, 0.002});
    pipeline.segments[1].pass_s = seconds;
    EXPECT_NE(pipeline.Validate().message().find("n1"), std::string::npos);
    pipeline = PipelineOf({0.001, 0.002});
    pipeline.hops[0].row_s = seconds;
    EXPECT_FALSE(pipeline.Validate().ok());
  }
  SimulatedPipeline pipeline = PipelineOf({0.001});
  pipeline.segments[0].node = 1;
  EXPECT_FALSE(pipeline.Validate().ok());
  pipeline = PipelineOf({0.001});
  pipeline.segments[0].experts.push_back({.count = 2, .used = 3});
  EXPECT_FALSE(pipeline.Validate().ok());
}

}  // namespace
}  // namespace millrace::coordinator
