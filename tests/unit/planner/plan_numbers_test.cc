#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/spec/stage_memory.h"
#include "planner/cost_model.h"
#include "planner/spec_costs.h"
#include "tests/unit/planner/planning_model.h"

namespace millrace::planner {
namespace {

using millrace::testing::OptionsFor;
using millrace::testing::PlanningModel;
using millrace::testing::PlanOf;
using millrace::testing::SmallShape;
using ::testing::HasSubstr;

Cluster EqualNodes(int count, int64_t memory) {
  Cluster cluster;
  for (int i = 0; i < count; ++i) {
    Node node;
    node.name = "n" + std::to_string(i);
    node.memory_bytes = memory;
    node.memory_bandwidth = 1e9;
    node.compute[kComputeDefault] = 1e12;
    cluster.nodes.push_back(node);
  }
  cluster.link_default = {1e8, 1e-5};
  return cluster;
}

// Every number of a plan follows from its route by the definitions.
TEST(PlanNumbers, FollowFromTheRoute) {
  const model::ModelSpec spec = PlanningModel({128, 128, 256, 64, 128, 64});
  const Cluster cluster = EqualNodes(3, 4'000'000);
  PlanOptions options = OptionsFor(1000);
  options.concurrency = 8;
  options.prompt_len = 100;
  options.chunk = 32;
  const Plan plan = PlanOf(spec, cluster, options);
  ASSERT_TRUE(plan.fits) << plan.verdict;
  const ModelCosts costs = CostsOfSpec(spec, {model::kKv16Bit, 2});
  const CostModel model(costs, cluster, 1000);
  double loop = 0;
  double cycle = 0;
  for (size_t i = 0; i < plan.route.size(); ++i) {
    const RouteEntry& entry = plan.route[i];
    const double own =
        model.Seconds(*model.Pass(entry.node, entry.run()), *plan.rows);
    EXPECT_EQ(plan.stages[i].segment_s, own);
    loop += own;
    cycle = std::max(cycle, own);
    if (i > 0) {
      EXPECT_EQ(entry.first_layer, plan.route[i - 1].last_layer + 1);
      const double occupancy = static_cast<double>(*plan.rows) * 64 * 4 / 1e8;
      loop += 1e-5 + occupancy;
      cycle = std::max(cycle, occupancy);
    }
  }
  loop += plan.route.size() > 1 ? 1e-5 : 0;
  EXPECT_NEAR(*plan.cycle_s, cycle, 1e-12 * cycle);
  EXPECT_NEAR(*plan.loop_s, loop, 1e-12 * loop);
  const auto n = static_cast<double>(*plan.microbatches);
  EXPECT_EQ(n, std::ceil(loop / cycle - 1e-9));
  EXPECT_GE(*plan.rows * *plan.microbatches, 8);
  EXPECT_NEAR(*plan.tokens_per_s,
              static_cast<double>(*plan.rows) * std::min(n / loop, 1 / cycle),
              1e-6);
  EXPECT_NEAR(*plan.tpot_s, std::max(loop, n * cycle), 1e-12);
  EXPECT_GT(*plan.ttft_s, loop);
}

// Memory is the worker's own sum, and a node one byte too small does not do.
TEST(PlanNumbers, FitsToTheByte) {
  const model::ModelSpec spec = PlanningModel({128, 128});
  const PlanOptions options = OptionsFor(640);
  Cluster cluster = EqualNodes(1, int64_t{1} << 40);
  const Plan roomy = PlanOf(spec, cluster, options);
  ASSERT_TRUE(roomy.fits);
  const int64_t need = roomy.stages[0].resident_bytes;
  model::StageShape shape = SmallShape(640);
  shape.last_layer = 1;
  shape.holds_embedding = shape.holds_head = true;
  shape.sequences = 1;
  EXPECT_EQ(need, model::StageBytesOf(spec, shape).total() +
                      testing::kSmallProcessBytes);
  cluster.nodes[0].memory_bytes = need;
  EXPECT_TRUE(PlanOf(spec, cluster, options).fits);
  cluster.reserve_bytes = 1;
  const Plan tight = PlanOf(spec, cluster, options);
  EXPECT_FALSE(tight.fits);
  EXPECT_TRUE(tight.route.empty());
  EXPECT_THAT(tight.verdict, HasSubstr("does not fit"));
}

// Keys and values of every type at their stored size, scales included: one for
// every 32 dims of a head.
TEST(PlanNumbers, KvBytesFollowTheFormat) {
  model::ModelSpec spec = PlanningModel({128, 128});
  for (model::LayerSpec& layer : spec.layers) {
    std::get<model::AttentionOp>(layer.operations[0]).head_dim = 40;
  }
  const Cluster cluster = EqualNodes(1, int64_t{1} << 40);
  const std::pair<model::KvFormat, int64_t> cases[] = {
      {model::kKvF32, 160}, {model::kKv16Bit, 80}, {model::kKvInt8, 48}};
  for (const auto& [format, head_bytes] : cases) {
    const Plan plan = PlanOf(spec, cluster, OptionsFor(640), format);
    ASSERT_TRUE(plan.fits);
    // Two layers of two KV heads, keys and values.
    EXPECT_EQ(plan.stages[0].kv_bytes_per_token, 8 * head_bytes);
    EXPECT_EQ(plan.stages[0].kv_bytes, 640 * 8 * head_bytes);
  }
}

// A node that would only lengthen the loop stays out; spare nodes too.
TEST(PlanNumbers, LeavesUselessNodesOut) {
  const model::ModelSpec spec = PlanningModel({256, 256, 256});
  Cluster cluster = EqualNodes(4, 100'000'000);
  cluster.nodes[3].memory_bandwidth = 1e3;
  const Plan plan = PlanOf(spec, cluster, OptionsFor(64));
  ASSERT_TRUE(plan.fits);
  for (const RouteEntry& entry : plan.route) {
    EXPECT_NE(entry.node, 3);
  }
  Constraint spare;
  spare.spare_nodes = 3;
  cluster.constraints.push_back(spare);
  EXPECT_EQ(PlanOf(spec, cluster, OptionsFor(64)).route.size(), 1u);
}

// What the constraints take away is said, with what is left.
TEST(PlanNumbers, NamesTheNodesThatStayUnused) {
  const model::ModelSpec spec = PlanningModel({256, 256, 256});
  Cluster cluster = EqualNodes(3, 100'000'000);
  Constraint spare;
  for (const int64_t nodes : {3, 7}) {
    spare.spare_nodes = nodes;
    cluster.constraints = {spare};
    const Plan none = PlanOf(spec, cluster, OptionsFor(64));
    ASSERT_FALSE(none.fits);
    EXPECT_EQ(none.verdict, "does not fit: the constraint spare keeps " +
                                std::to_string(nodes) +
                                " nodes unused, the cluster has 3");
  }
  spare.spare_nodes = 2;
  cluster.constraints.clear();
  const Plan roomy = PlanOf(spec, EqualNodes(1, 100'000'000), OptionsFor(64));
  cluster = EqualNodes(3, roomy.stages[0].resident_bytes - 1);
  ASSERT_TRUE(PlanOf(spec, cluster, OptionsFor(64)).fits);
  cluster.constraints = {spare};
  const Plan tight = PlanOf(spec, cluster, OptionsFor(64));
  ASSERT_FALSE(tight.fits);
  EXPECT_THAT(tight.verdict,
              HasSubstr("the largest 1 of 3 nodes (the constraint spare keeps "
                        "2 unused) together have "));
}

// Without bandwidth times are unknown, not invented.
TEST(PlanNumbers, UnknownStaysUnknown) {
  const model::ModelSpec spec = PlanningModel({128, 128});
  Cluster cluster = EqualNodes(2, 100'000'000);
  cluster.nodes[1].memory_bandwidth.reset();
  cluster.nodes[0].memory_bandwidth.reset();
  const Plan plan = PlanOf(spec, cluster, OptionsFor(64));
  ASSERT_TRUE(plan.fits);
  EXPECT_FALSE(plan.cycle_s.has_value());
  EXPECT_FALSE(plan.tokens_per_s.has_value());
  EXPECT_TRUE(plan.concurrency[0].sequences.has_value());
}

}  // namespace
}  // namespace millrace::planner
