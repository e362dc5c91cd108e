// Nodes that hold fewer experts than their layers have: memory, hits and reads
// follow from the definitions (planner/streamed/README.md); provoked with
// budgets around the floor, disks that are missing or small, and models without
// experts.
#include <cmath>
#include <span>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/expert_records.h"
#include "planner/plan_codec.h"
#include "planner/plan_reader.h"
#include "planner/planner.h"
#include "planner/streamed/held_costs.h"

namespace millrace::planner {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTrunk = 1'000'000'000;
constexpr int64_t kExpert = 100'000'000;
constexpr int64_t kScratch = 50'000'000;

// Four layers of 8 experts, of which a token wants 2; 1 KB of KV a token.
ModelCosts Costs() {
  ModelCosts costs;
  costs.name = "experts";
  costs.digest = "sha256:experts";
  costs.hidden_bytes = 4096;
  LayerCost layer;
  layer.weights_bytes = kTrunk + 8 * kExpert;
  layer.bytes_per_token = kTrunk + 2 * kExpert;
  layer.kv_per_token = 1000;
  layer.flops_per_token = 1e9;
  layer.experts = {.count = 8, .used = 2, .bytes_each = kExpert};
  costs.layers.assign(4, layer);
  costs.first.weights_bytes = 300'000'000;
  costs.last = {.weights_bytes = 400'000'000,
                .bytes_per_token = 4e8,
                .flops_per_token = 1e9};
  return costs;
}

Cluster Nodes(int64_t count, int64_t memory) {
  Cluster cluster;
  for (int64_t i = 0; i < count; ++i) {
    Node node;
    node.name = std::string(1, static_cast<char>('a' + i));
    node.memory_bytes = memory;
    node.memory_bandwidth = 100e9;
    node.compute["default"] = 1e12;
    node.nvme_bandwidth = 4e9;
    cluster.nodes.push_back(node);
  }
  cluster.link_default = {.bandwidth = 1e9, .latency_s = 0.0001};
  return cluster;
}

PlanOptions Options() {
  PlanOptions options;
  options.placement = PlacementKind::kStreamed;
  options.contexts = {1000};
  return options;
}

struct Case {
  ModelCosts costs = Costs();
  Cluster cluster = Nodes(1, 64'000'000'000);
  PlanOptions options = Options();

  [[nodiscard]] absl::StatusOr<Plan> Make() const {
    PlanInput input;
    input.costs = &costs;
    input.cluster = &cluster;
    input.options = &options;
    input.scratch = [](std::span<const LayerRun>) { return kScratch; };
    return MakePlan(input);
  }
  [[nodiscard]] Plan Planned() const {
    const absl::StatusOr<Plan> plan = Make();
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.value_or(Plan());
  }
};

// What one node needs for all layers and a sequence, without experts.
constexpr int64_t kResident =
    4 * kTrunk + 700'000'000 + kScratch + 4 * 1000 * 1000;

TEST(Streamed, OneNode) {
  const int64_t record = RecordOfKept(kExpert);
  Case one;
  one.cluster = Nodes(1, kResident + (8 + 10) * record + 5000);
  const Plan plan = one.Planned();
  ASSERT_TRUE(plan.fits) << plan.verdict;
  EXPECT_EQ(plan.placement, PlacementKind::kStreamed);
  ASSERT_EQ(plan.stages.size(), 1U);
  const PlanStage& stage = plan.stages[0];
  ASSERT_TRUE(stage.streamed.has_value());
  EXPECT_EQ(stage.streamed->experts, 32);
  EXPECT_EQ(stage.streamed->experts_held, 10);
  EXPECT_DOUBLE_EQ(stage.streamed->hit_share, 10.0 / 32);
  EXPECT_EQ(stage.weights_bytes, 4 * kTrunk + 700'000'000 + 18 * record);
  EXPECT_EQ(stage.scratch_bytes, kScratch);
  const double read = 4 * 2 * static_cast<double>(record) * (22.0 / 32);
  EXPECT_NEAR(*stage.streamed->read_bytes, read, 1);
  EXPECT_NEAR(*stage.streamed->read_s, read / 4e9, 1e-9);
  const double compute =
      (4 * (kTrunk + 2 * kExpert) + 4e8) / 100e9 + 5e9 / 1e12;
  EXPECT_NEAR(*stage.segment_s, compute + read / 4e9, 1e-9);
  EXPECT_NEAR(*plan.tokens_per_s, 1 / (compute + read / 4e9), 1e-6);
  // Beside the cache that these times count with.
  EXPECT_EQ(plan.concurrency[0].sequences, 1);
  EXPECT_THAT(plan.verdict, HasSubstr("10 of 32 experts are in memory"));
  EXPECT_EQ(plan.bounds.gap, 0);
}

TEST(Streamed, RowsReadDifferentExperts) {
  const int64_t record = RecordOfKept(kExpert);
  Case one;
  one.options.concurrency = 6;
  one.cluster =
      Nodes(1, kResident + 5 * 4 * 1000 * 1000 + (8 + 16) * record + 5000);
  const Plan plan = one.Planned();
  ASSERT_TRUE(plan.fits) << plan.verdict;
  // One node: a micro-batch of all sequences.
  EXPECT_EQ(plan.rows, 6);
  const double distinct = 8 * (1 - std::pow(0.75, 6));
  EXPECT_NEAR(*plan.stages[0].streamed->read_s,
              4 * distinct * static_cast<double>(record) * 0.5 / 4e9, 1e-9);
}

TEST(Streamed, Floor) {
  const int64_t floor = kResident + (8 + 2) * RecordOfKept(kExpert);
  Case one;
  one.cluster = Nodes(1, floor);
  const Plan plan = one.Planned();
  ASSERT_TRUE(plan.fits) << plan.verdict;
  EXPECT_EQ(plan.stages[0].streamed->experts_held, 2);
  one.cluster.nodes[0].memory_bytes = floor - 1;
  const Plan below = one.Planned();
  EXPECT_FALSE(below.fits);
  EXPECT_THAT(below.verdict,
              HasSubstr("does not fit, experts streamed or not"));
  EXPECT_TRUE(below.route.empty());
  EXPECT_FALSE(below.advice.empty());
  // A second node holds half of it.
  one.cluster = Nodes(2, floor - 1);
  EXPECT_TRUE(one.Planned().fits);
}

// With room for all experts it is the contiguous plan.
TEST(Streamed, NothingToStream) {
  Case one;
  one.cluster = Nodes(3, 12'000'000'000);
  const Plan plan = one.Planned();
  one.options.placement = PlacementKind::kContiguous;
  const Plan whole = one.Planned();
  ASSERT_TRUE(plan.fits && whole.fits);
  EXPECT_DOUBLE_EQ(*plan.tokens_per_s, *whole.tokens_per_s);
  EXPECT_DOUBLE_EQ(*plan.loop_s, *whole.loop_s);
  ASSERT_EQ(plan.stages.size(), whole.stages.size());
  for (const PlanStage& stage : plan.stages) {
    EXPECT_EQ(stage.streamed->experts_held, stage.streamed->experts);
    EXPECT_EQ(*stage.streamed->read_s, 0);
  }
  EXPECT_THAT(plan.verdict, HasSubstr("nothing is streamed"));
}

TEST(Streamed, DisksThatAreMissingOrSmall) {
  const int64_t record = RecordOfKept(kExpert);
  Case one;
  // Each node has room for the floor of two layers, but not for all experts.
  one.cluster = Nodes(
      2, 2 * kTrunk + 500'000'000 + kScratch + 2'000'000 + (8 + 2) * record);
  EXPECT_TRUE(one.Planned().fits);
  one.cluster.nodes[1].nvme_bytes = 2 * kTrunk + 16 * record;
  EXPECT_FALSE(one.Planned().fits);  // an end of the model stands there too
  one.cluster.nodes[1].nvme_bytes = 2 * kTrunk + 400'000'000 + 16 * record;
  EXPECT_TRUE(one.Planned().fits);
  one.cluster.nodes[1].nvme_bandwidth.reset();
  EXPECT_FALSE(one.Planned().fits);
  // With memory for its experts it needs no disk.
  one.cluster.nodes[1].memory_bytes = 5'000'000'000;
  const Plan plan = one.Planned();
  ASSERT_TRUE(plan.fits) << plan.verdict;
  for (const PlanStage& stage : plan.stages) {
    EXPECT_EQ(stage.streamed->hit_share == 1, stage.node == 1);
  }
}

TEST(Streamed, Refused) {
  Case one;
  one.options.objective = Objective::kConcurrency;
  EXPECT_EQ(KindOf(one.Make().status()), ErrorKind::kUsage);
  one.options.objective = Objective::kThroughput;
  one.cluster.nodes[0].memory_bandwidth.reset();
  EXPECT_EQ(KindOf(one.Make().status()), ErrorKind::kInput);
  EXPECT_EQ(ObjectOf(one.Make().status()), "node a: memory_bandwidth");
  one.cluster = Nodes(2, 64'000'000'000);
  one.cluster.nodes[0].nvme_bandwidth.reset();
  EXPECT_TRUE(one.Make().ok());
  one.cluster.nodes[1].nvme_bandwidth.reset();
  EXPECT_THAT(std::string(one.Make().status().message()),
              HasSubstr("nvme.bandwidth"));
  one.cluster = Nodes(1, 64'000'000'000);
  for (LayerCost& layer : one.costs.layers) {
    layer.experts = {};
  }
  EXPECT_EQ(KindOf(one.Make().status()), ErrorKind::kUsage);
}

// A plan file carries the model as it is; reading it gives the same numbers.
TEST(Streamed, ReadBack) {
  const int64_t record = RecordOfKept(kExpert);
  Case one;
  one.options.concurrency = 3;
  one.cluster = Nodes(
      2, 2 * kTrunk + 500'000'000 + kScratch + 6'000'000 + (8 + 5) * record);
  const Plan plan = one.Planned();
  ASSERT_TRUE(plan.fits) << plan.verdict;
  const std::string text =
      WriteJson(PlanToJson(plan, one.costs, one.cluster, one.options));
  const absl::StatusOr<PlanFile> file = ParsePlan(text, "plan.json");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->costs, one.costs);
  EXPECT_EQ(file->plan.placement, PlacementKind::kStreamed);
  EXPECT_EQ(*file->plan.tokens_per_s, *plan.tokens_per_s);
  EXPECT_EQ(*file->plan.loop_s, *plan.loop_s);
  ASSERT_EQ(file->plan.stages.size(), plan.stages.size());
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    EXPECT_EQ(file->plan.stages[i].weights_bytes, plan.stages[i].weights_bytes);
    EXPECT_EQ(file->plan.stages[i].streamed->experts_held,
              plan.stages[i].streamed->experts_held);
    EXPECT_EQ(*file->plan.stages[i].segment_s, *plan.stages[i].segment_s);
  }
  // Nodes that have shrunk since, and experts beyond the weights.
  Cluster small = one.cluster;
  small.nodes[0].memory_bytes -= 6 * record;
  small.nodes[1].memory_bytes -= 6 * record;
  EXPECT_FALSE(
      ParsePlan(WriteJson(PlanToJson(plan, one.costs, small, one.options)),
                "plan.json")
          .ok());
  ModelCosts odd = one.costs;
  odd.layers[1].experts.bytes_each = 1e300;
  EXPECT_FALSE(
      ParsePlan(WriteJson(PlanToJson(plan, odd, one.cluster, one.options)),
                "plan.json")
          .ok());
}

// A model that does not fit but for streaming is told so, where a disk is.
TEST(Streamed, IsAdvised) {
  Case one;
  one.options.placement = PlacementKind::kAuto;
  one.cluster = Nodes(1, kResident + 20 * RecordOfKept(kExpert));
  const auto advised = [&one]() {
    for (const Advice& advice : one.Planned().advice) {
      if (advice.change == "--placement streamed") {
        return advice.effect;
      }
    }
    return std::string();
  };
  EXPECT_EQ(advised(), "fits");
  one.cluster.nodes[0].nvme_bandwidth.reset();
  EXPECT_EQ(advised(), "");
}

}  // namespace
}  // namespace millrace::planner
