#include "coordinator/simulation/pipeline_of_plan.h"

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/cost_model.h"
#include "planner/plan_numbers.h"
#include "planner/streamed/held_costs.h"
#include "tests/unit/coordinator/simulation/simulated_cases.h"

namespace millrace::coordinator {
namespace {

using planner::RouteEntry;
using testing::HasSubstr;

// A plan by its route; everything else follows.
struct Case {
  std::string name;
  planner::ModelCosts costs;
  planner::Cluster cluster;
  planner::PlanOptions options;
  planner::Plan plan;

  void Fill() {
    plan.fits = true;
    planner::FillNumbers(
        planner::CostModel(costs, cluster, options.contexts[0]), options, plan);
  }
  absl::StatusOr<SimulatedPipeline> Pipeline() const {
    return PipelineOfPlan(costs, cluster, options, plan);
  }
};

// Layers of 1 GB, 4096 B of KV a token; nodes a, b ... of 100 GB/s and 1e12
// operations a second, links of 1 GB/s and 0.5 ms.
Case CaseOf(std::string name, int64_t layers, int64_t nodes,
            std::vector<RouteEntry> route, int64_t concurrency) {
  Case one;
  one.name = std::move(name);
  one.costs.name = "model";
  one.costs.hidden_bytes = 100'000;
  planner::LayerCost layer;
  layer.weights_bytes = 1'000'000'000;
  layer.bytes_per_token = 1e9;
  layer.kv_per_token = 4096;
  layer.flops_per_token = 2e8;
  one.costs.layers.assign(static_cast<size_t>(layers), layer);
  for (int64_t i = 0; i < nodes; ++i) {
    planner::Node node;
    node.name = std::string(1, static_cast<char>('a' + i));
    node.memory_bytes = 64'000'000'000;
    node.memory_bandwidth = 100e9;
    node.compute["default"] = 1e12;
    one.cluster.nodes.push_back(node);
  }
  one.cluster.link_default = {.bandwidth = 1e9, .latency_s = 0.0005};
  one.options.contexts = {4096};
  one.options.concurrency = concurrency;
  one.plan.route = std::move(route);
  return one;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back(CaseOf("one node", 6, 1, {{0, 0, 5}}, 16));
  cases.push_back(CaseOf("single rows", 6, 2, {{0, 0, 2}, {1, 3, 5}}, 3));
  cases.push_back(CaseOf("two equal nodes", 6, 2, {{0, 0, 2}, {1, 3, 5}}, 12));
  cases.push_back(CaseOf("uneven", 9, 3, {{2, 0, 0}, {0, 1, 6}, {1, 7, 8}}, 8));
  cases.push_back(CaseOf("heavy head", 6, 2, {{0, 0, 3}, {1, 4, 5}}, 6));
  cases.back().costs.last = {.weights_bytes = 3'000'000'000,
                             .bytes_per_token = 3e9,
                             .flops_per_token = 1e9};
  cases.push_back(CaseOf("a link binds", 4, 2, {{0, 0, 1}, {1, 2, 3}}, 40));
  cases.back().cluster.link_default.bandwidth = 1e8;
  cases.push_back(CaseOf("experts", 8, 4,
                         {{0, 0, 1}, {1, 2, 3}, {2, 4, 5}, {3, 6, 7}}, 64));
  for (planner::LayerCost& layer : cases.back().costs.layers) {
    layer.weights_bytes = 4'000'000'000;
    layer.bytes_per_token = 3e8;
    layer.experts = {.count = 64, .used = 4, .bytes_each = 5e7};
  }
  cases.push_back(CaseOf("interleaved", 8, 2,
                         {{0, 0, 1}, {1, 2, 3}, {0, 4, 5}, {1, 6, 7}}, 20));
  std::vector<RouteEntry> chain;
  for (int64_t i = 0; i < 20; ++i) {
    chain.push_back({i, i, i});
  }
  cases.push_back(CaseOf("twenty nodes", 20, 20, chain, 200));
  for (Case& one : cases) {
    one.Fill();
  }
  return cases;
}

// Clients as many as rows times micro-batches, which decode and do nothing
// else: the simulation gives the plan's tokens per second and TPOT. They are
// bounds; an interleaved route that waits for itself may stay below.
TEST(PipelineOfPlan, AClosedLoopGivesThePlansNumbers) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    const absl::StatusOr<SimulatedPipeline> pipeline = one.Pipeline();
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    const int64_t clients = *one.plan.rows * *one.plan.microbatches;
    LoadReport report = Play(*pipeline, ClosedLoad(clients, clients, 1, 3000));
    EXPECT_EQ(report.completed, clients);
    EXPECT_EQ(report.microbatches, *one.plan.microbatches);
    const double share =
        report.PerSecond(report.output_tokens) / *one.plan.tokens_per_s;
    const double tpot_share = report.itl.Mean() / *one.plan.tpot_s;
    std::cout << one.name << ": " << clients << " clients, "
              << *one.plan.tokens_per_s << " tokens/s planned, simulated "
              << share << " of it, TPOT " << tpot_share << "\n";
    EXPECT_NEAR(share, 1, 0.01);
    EXPECT_NEAR(tpot_share, 1, 0.01);
  }
}

// Nodes that read a part of their experts from NVMe: the same numbers.
TEST(PipelineOfPlan, AClosedLoopOfAStreamedPlan) {
  Case one = CaseOf("streamed", 8, 2, {{0, 0, 2}, {1, 3, 7}}, 24);
  for (planner::LayerCost& layer : one.costs.layers) {
    layer.weights_bytes = 4'000'000'000;
    layer.bytes_per_token = 9e8;
    layer.experts = {.count = 64, .used = 4, .bytes_each = 5e7};
  }
  for (planner::Node& node : one.cluster.nodes) {
    node.memory_bytes = 14'000'000'000;
    node.nvme_bandwidth = 5e9;
  }
  const planner::CostModel model(one.costs, one.cluster, 4096);
  one.plan.fits = true;
  one.plan.placement = planner::PlacementKind::kStreamed;
  ASSERT_TRUE(
      planner::streamed::FillStreamed(
          planner::streamed::StreamedNodes(model, 24), one.options, one.plan)
          .ok());
  EXPECT_LT(one.plan.stages[1].streamed->hit_share, 0.5);
  const auto pipeline = one.Pipeline();
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const int64_t clients = *one.plan.rows * *one.plan.microbatches;
  LoadReport report = Play(*pipeline, ClosedLoad(clients, clients, 1, 1000));
  EXPECT_NEAR(report.PerSecond(report.output_tokens) / *one.plan.tokens_per_s,
              1, 0.01);
  EXPECT_NEAR(report.itl.Mean() / *one.plan.tpot_s, 1, 0.01);
}

// Asked for, KV and state take their bytes at the node's memory bandwidth.
TEST(PipelineOfPlan, ReadsOfSequences) {
  Case one = CaseOf("reads", 4, 2, {{0, 0, 1}, {1, 2, 3}}, 4);
  one.costs.layers[1].kv_positions_max = 128;
  one.costs.layers[3].state_per_sequence = 1'000'000;
  one.costs.layers[2].kv_per_token = 0;
  one.Fill();
  EXPECT_TRUE(one.Pipeline()->segments[0].kv.empty());
  EXPECT_EQ(one.Pipeline()->segments[1].sequence_s, 0);
  const auto pipeline =
      PipelineOfPlan(one.costs, one.cluster, one.options, one.plan,
                     {.sequence_reads = true, .coordinator_s = 1e-5});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(pipeline->coordinator_s, 1e-5);
  const auto& kv = pipeline->segments[0].kv;
  ASSERT_EQ(kv.size(), 2U);
  EXPECT_EQ(kv[0].positions_max, 0);
  EXPECT_EQ(kv[1].positions_max, 128);
  EXPECT_DOUBLE_EQ(kv[0].position_s, 4096 / 100e9);
  EXPECT_DOUBLE_EQ(kv[1].position_s, 4096 / 100e9);
  EXPECT_EQ(pipeline->segments[1].kv.size(), 1U);
  EXPECT_DOUBLE_EQ(pipeline->segments[1].sequence_s, 2e6 / 100e9);
}

// More micro-batches than a coordinator runs are not dropped in silence.
TEST(PipelineOfPlan, MicrobatchesBeyondTheMost) {
  Case one = CaseOf("long way", 2, 2, {{0, 0, 0}, {1, 1, 1}}, 1);
  one.cluster.link_default.latency_s = 100;
  one.Fill();
  ASSERT_GT(*one.plan.microbatches, 4096);
  const auto pipeline = one.Pipeline();
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(pipeline->microbatches, 4096);
  EXPECT_EQ(pipeline->microbatches_wanted, *one.plan.microbatches);
}

// Blocks of 64 positions for the sequences planned for, or for all that fit; a
// state takes a slot, KV alone leaves four for each.
TEST(PipelineOfPlan, PoolsHoldWhatIsPlanned) {
  Case one = CaseOf("pools", 4, 2, {{0, 0, 1}, {1, 2, 3}}, 10);
  one.options.contexts = {1000};
  one.costs.layers[3].kv_positions_max = 200;
  one.Fill();
  const auto planned = one.Pipeline();
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->context, 1000);
  EXPECT_EQ(planned->nodes[0].name, "a");
  EXPECT_EQ(planned->nodes[0].slots, 40);
  EXPECT_EQ(planned->nodes[0].full_blocks, 160);  // 10 of 16
  ASSERT_EQ(planned->nodes[1].windows.size(), 1U);
  EXPECT_EQ(planned->nodes[1].windows[0].ring_blocks, 4);
  EXPECT_EQ(planned->nodes[1].windows[0].pool_blocks, 40);

  // Node a keeps 16 blocks of 64 positions in two layers, 8 MiB a sequence:
  // 101 of them, not the 103 that there would be without blocks.
  one.options.concurrency.reset();
  one.cluster.nodes[0].memory_bytes =
      int64_t{2'000'000'000} + 102 * (8 << 20) - 1;
  one.Fill();
  EXPECT_EQ(*one.plan.concurrency[0].sequences, 104);
  EXPECT_EQ(one.Pipeline()->nodes[0].full_blocks, 101 * 16);
  EXPECT_EQ(one.Pipeline()->nodes[0].slots, 4 * 101);
  one.costs.layers[2].state_per_sequence = 1000;
  one.Fill();
  EXPECT_EQ(one.Pipeline()->nodes[0].slots, 101);

  // A few bytes short of a single one in whole blocks.
  one.cluster.nodes[0].memory_bytes = int64_t{2'000'000'000} + (8 << 20) - 1;
  one.Fill();
  const absl::Status no_room = one.Pipeline().status();
  EXPECT_EQ(KindOf(no_room), ErrorKind::kAnswerNo);
  EXPECT_THAT(std::string(no_room.message()), HasSubstr("a: has no room"));
}

// What a time needs and the cluster lacks is named; so is a plan that fits
// nowhere.
TEST(PipelineOfPlan, UnknownTimesAreNamed) {
  const Case whole = Cases()[2];
  Case one = whole;
  one.cluster.nodes[1].memory_bandwidth.reset();
  one.Fill();
  EXPECT_EQ(KindOf(one.Pipeline().status()), ErrorKind::kInput);
  EXPECT_THAT(std::string(one.Pipeline().status().message()),
              HasSubstr("b: has no memory_bandwidth"));
  one = whole;
  one.cluster.nodes[0].compute.clear();
  one.Fill();
  EXPECT_THAT(std::string(one.Pipeline().status().message()),
              HasSubstr("a: has no compute"));
  one = whole;
  one.cluster.link_default.bandwidth.reset();
  one.Fill();
  EXPECT_THAT(std::string(one.Pipeline().status().message()),
              HasSubstr("link from a to b: has no bandwidth"));
  one = whole;
  one.cluster.link_default.latency_s.reset();
  one.Fill();
  EXPECT_THAT(std::string(one.Pipeline().status().message()),
              HasSubstr("link from a to b: has no latency"));
  one = whole;
  one.plan.fits = false;
  EXPECT_EQ(KindOf(one.Pipeline().status()), ErrorKind::kAnswerNo);
  // So slow that a pass takes days.
  one = whole;
  one.cluster.nodes[1].memory_bandwidth = 1e-3;
  one.Fill();
  EXPECT_EQ(KindOf(one.Pipeline().status()), ErrorKind::kInput);
}

}  // namespace
}  // namespace millrace::coordinator
