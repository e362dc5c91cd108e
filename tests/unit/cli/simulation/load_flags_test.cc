#include "cli/simulation/load_flags.h"

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

using coordinator::SimulatedPipeline;
using testing::HasSubstr;

SimulatedPipeline PipelineFor(int64_t context) {
  SimulatedPipeline pipeline;
  pipeline.nodes.push_back(
      {.name = "a", .full_blocks = context / 64, .windows = {}, .slots = 8});
  pipeline.segments.push_back(
      {.node = 0, .pass_s = 0.001, .row_s = 0, .experts = {}});
  pipeline.context = context;
  return pipeline;
}

TEST(LoadFlags, OneWayToArrive) {
  const SimulatedPipeline pipeline = PipelineFor(4096);
  LoadFlags flags;
  EXPECT_EQ(KindOf(flags.Options(pipeline).status()), ErrorKind::kUsage);
  flags.rate = 2.5;
  const auto options = flags.Options(pipeline);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->workload.arrivals.rate, 2.5);
  EXPECT_EQ(options->workload.requests, 1000);
  EXPECT_EQ(options->workload.input.tokens, 512);
  EXPECT_FALSE(options->limits.any());
  flags.concurrency = 4;
  EXPECT_THAT(std::string(flags.Options(pipeline).status().message()),
              HasSubstr("more than one way"));
}

// What is out of range is refused by the name of its option, before anything is
// played.
TEST(LoadFlags, RangesAreNamed) {
  struct Case {
    const char* option;
    std::function<void(LoadFlags&)> spoil;
  };
  for (const Case& one : std::vector<Case>{
           {"--rate", [](LoadFlags& flags) { flags.rate = 0; }},
           {"--rate", [](LoadFlags& flags) { flags.rate = 1e300; }},
           {"--requests", [](LoadFlags& flags) { flags.requests = 0; }},
           {"--requests", [](LoadFlags& flags) { flags.requests = 1LL << 40; }},
           {"--burstiness", [](LoadFlags& flags) { flags.burstiness = 0; }},
           {"--range-ratio", [](LoadFlags& flags) { flags.range_ratio = 1.5; }},
           {"--input-len", [](LoadFlags& flags) { flags.input_len = 0; }},
           {"--output-len", [](LoadFlags& flags) { flags.output_len = -3; }},
           {"more than the 4096",
            [](LoadFlags& flags) { flags.input_len = 4000; }},
           {"--slo", [](LoadFlags& flags) { flags.slo = "ttft"; }},
           {"--concurrency",
            [](LoadFlags& flags) {
              flags.rate.reset();
              flags.concurrency = 0;
            }},
           {"--find-rate",
            [](LoadFlags& flags) {
              flags.rate.reset();
              flags.find_rate = true;
            }},
       }) {
    LoadFlags flags;
    flags.rate = 1;
    one.spoil(flags);
    const absl::Status status = flags.Options(PipelineFor(4096)).status();
    EXPECT_EQ(KindOf(status), ErrorKind::kUsage) << one.option;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.option));
  }
}

TEST(LoadFlags, WhatIsCountedBeyondThePlan) {
  LoadFlags flags;
  EXPECT_EQ(flags.Beyond()->coordinator_s, 0);
  EXPECT_FALSE(flags.Beyond()->sequence_reads);
  flags.sequence_reads = true;
  flags.coordinator_time = "30us";
  EXPECT_DOUBLE_EQ(flags.Beyond()->coordinator_s, 30e-6);
  EXPECT_TRUE(flags.Beyond()->sequence_reads);
  for (const char* text : {"soon", "-1us", "2s", "1e400s"}) {
    flags.coordinator_time = text;
    EXPECT_EQ(KindOf(flags.Beyond().status()), ErrorKind::kUsage) << text;
  }
}

TEST(ParseServiceLimits, ReadsEach) {
  const auto limits = ParseServiceLimits("tpot=50ms,ttft=2s,e2el=0.5");
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->ttft, absl::Seconds(2));
  EXPECT_EQ(limits->tpot, absl::Milliseconds(50));
  EXPECT_EQ(limits->e2el, absl::Milliseconds(500));
  EXPECT_FALSE(ParseServiceLimits("")->any());
  for (const char* text :
       {"ttft", "ttft=", "ttft=0", "ttft=-1s", "ttft=1s,", "ttft=1s,ttft=2s",
        "itl=1s", "=1s", ",", "ttft=1s;tpot=2s", "ttft=1 day", "TTFT=1s"}) {
    EXPECT_EQ(KindOf(ParseServiceLimits(text).status()), ErrorKind::kUsage)
        << text;
  }
}

}  // namespace
}  // namespace millrace::cli
