#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/criteria.h"
#include "planner/placement/place.h"
#include "planner/plan_numbers.h"
#include "tests/bench/planner/plan_baselines.h"

namespace millrace::planner {
namespace {

using placement::Place;
using placement::Placement;
using placement::PlacementOptions;

constexpr Objective kObjectives[] = {
    Objective::kThroughput, Objective::kConcurrency, Objective::kLatency,
    Objective::kNodes, Objective::kEnergy};

struct Question {
  std::string costs;
  std::string cluster;
  int64_t context = 4096;
  PlacementOptions options;
};

struct Answer {
  Placement placement;
  Measures measures;
};

Answer Ask(const Question& question) {
  const auto costs = testing::LoadExampleCosts(question.costs);
  const auto cluster = testing::LoadExampleCluster(question.cluster);
  EXPECT_TRUE(costs.ok()) << costs.status();
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  if (!costs.ok() || !cluster.ok()) {
    return {};
  }
  const CostModel model(*costs, *cluster, question.context);
  const auto placed = Place(model, question.options);
  EXPECT_TRUE(placed.ok() && placed->has_value());
  if (!placed.ok() || !placed->has_value()) {
    return {};
  }
  return {**placed,
          MeasureRoute(model, (*placed)->route, question.options.concurrency)};
}

// Kimi K3 as published on nodes of 44 GB: 69 linear layers two to a node and 24
// full ones alone, 59 nodes, which needs several runs a node; contiguous runs
// need 70. For one sequence any two layers share a node: 47.
TEST(PlaceExamples, PacksTwoLinearLayersToANode) {
  Question question = {"kimi-k3-4bit", "44gb", 262144, {}};
  question.options.objective = Objective::kNodes;
  question.options.concurrency = 92;
  const Answer automatic = Ask(question);
  EXPECT_EQ(automatic.measures.nodes_used, 59);
  EXPECT_EQ(automatic.placement.kind, PlacementKind::kInterleaved);
  EXPECT_EQ(automatic.placement.bounds.gap, 0.0);

  question.options.placement = PlacementKind::kContiguous;
  const Answer contiguous = Ask(question);
  EXPECT_EQ(contiguous.measures.nodes_used, 70);
  EXPECT_TRUE(contiguous.placement.exact);

  question.options.placement = PlacementKind::kInterleaved;
  question.options.concurrency.reset();
  const Answer one = Ask(question);
  EXPECT_EQ(one.measures.nodes_used, 47);
  EXPECT_EQ(one.placement.bounds.nodes_used, 47);
}

struct Aligned {
  std::string cluster;
  int64_t layers_a_node;
  int64_t sequences;
};

// Kimi K3 from its shapes: cuts every 12 layers (24 on four nodes) give every
// node the same number of full-attention layers, and most sequences. The
// planner finds these cuts unaided.
TEST(PlaceExamples, FindsTheCutsWhereKvIsEven) {
  const Aligned all[] = {{"8x400gb", 12, 387},
                         {"8x640gb", 12, 858},
                         {"8x1.1tb", 12, 1760},
                         {"4x1.1tb", 24, 681}};
  for (const Aligned& aligned : all) {
    SCOPED_TRACE(aligned.cluster);
    Question question = {"kimi-k3", aligned.cluster, 131072, {}};
    question.options.objective = Objective::kConcurrency;
    question.options.placement = PlacementKind::kContiguous;
    const Answer answer = Ask(question);
    EXPECT_EQ(answer.measures.sequences, aligned.sequences);
    EXPECT_TRUE(answer.placement.exact);
    for (const RouteEntry& entry : answer.placement.route) {
      EXPECT_EQ(entry.first_layer % aligned.layers_a_node, 0);
    }
  }
}

// What an even split holds in the same places.
TEST(PlaceExamples, EvenSplitsHoldFewerSequences) {
  const Aligned all[] = {{"8x400gb", 12, 327},
                         {"8x640gb", 12, 698},
                         {"8x1.1tb", 12, 1408},
                         {"4x1.1tb", 24, 613}};
  const auto costs = testing::LoadExampleCosts("kimi-k3");
  ASSERT_TRUE(costs.ok()) << costs.status();
  for (const Aligned& own : all) {
    SCOPED_TRACE(own.cluster);
    const auto cluster = testing::LoadExampleCluster(own.cluster);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const CostModel model(*costs, *cluster, 131072);
    // 93 layers: the first nodes hold one layer more.
    std::vector<RouteEntry> route;
    int64_t begin = 0;
    for (int64_t node = 0; node < model.num_nodes(); ++node) {
      const int64_t layers =
          93 / model.num_nodes() + (node < 93 % model.num_nodes() ? 1 : 0);
      route.push_back({node, begin, begin + layers - 1});
      begin += layers;
    }
    EXPECT_EQ(MeasureRoute(model, route, std::nullopt).sequences,
              own.sequences);
  }
}

// After 12 i layers of Kimi K3 a cut carries 1 + i vectors a token, anywhere
// else one more, nine at most.
TEST(PlaceExamples, CutsOfKimiK3CarryTheKeptStates) {
  const auto costs = testing::LoadExampleCosts("kimi-k3");
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->layers.size(), 93u);
  int64_t kv = 0;
  int64_t state = 0;
  for (int64_t layer = 0; layer < 93; ++layer) {
    const LayerCost& cost = costs->layers[static_cast<size_t>(layer)];
    kv += cost.kv_per_token;
    state += cost.state_per_sequence;
    if (layer > 0) {
      EXPECT_EQ(cost.vectors, 1 + layer / 12 + (layer % 12 == 0 ? 0 : 1))
          << layer;
    }
  }
  EXPECT_EQ(kv, 27648);
  EXPECT_EQ(state, int64_t{414} << 20);
}

// Nobody's memory is wasted because another is poor: 4, 8 and 16 layers on
// nodes of 16, 32 and 64 GB hold 14 sequences each.
TEST(PlaceExamples, UnevenNodesHoldUnevenRuns) {
  Question question = {"dense-28", "uneven", 32768, {}};
  question.options.objective = Objective::kConcurrency;
  const Answer answer = Ask(question);
  EXPECT_EQ(answer.measures.sequences, 14);
  for (const RouteEntry& entry : answer.placement.route) {
    EXPECT_EQ(entry.last_layer - entry.first_layer + 1,
              int64_t{4} << entry.node);
  }
}

// On the published examples no plan is worse than an even split, a split by
// memory or greedy filling, by any criterion of any objective.
TEST(PlaceExamples, NeverWorseThanByHand) {
  for (const testing::PlanExample& example : testing::PlanExamples()) {
    SCOPED_TRACE(example.costs + " on " + example.cluster);
    const auto costs = testing::LoadExampleCosts(example.costs);
    const auto cluster = testing::LoadExampleCluster(example.cluster);
    ASSERT_TRUE(costs.ok() && cluster.ok());
    const CostModel model(*costs, *cluster, example.context);
    for (const Objective objective : kObjectives) {
      const auto criteria = CriteriaOf(objective, model);
      ASSERT_TRUE(criteria.ok()) << criteria.status();
      PlacementOptions options;
      options.objective = objective;
      const auto placed = Place(model, options);
      ASSERT_TRUE(placed.ok() && placed->has_value());
      const Measures plan = MeasureRoute(model, (*placed)->route, std::nullopt);
      const testing::Baselines by_hand = testing::BaselinesOf(model, *criteria);
      for (const auto& own :
           {by_hand.even, by_hand.by_memory, by_hand.greedy}) {
        if (own.has_value()) {
          EXPECT_LE(Compare(*criteria, plan, *own), 0)
              << static_cast<int>(objective);
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace::planner
