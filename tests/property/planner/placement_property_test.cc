#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/placement.h"
#include "planner/spec_costs.h"
#include "planner/stage_scratch.h"
#include "tests/unit/planner/planning_model.h"

namespace millrace::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Slowest stage of the best cut of layers [begin, L) over nodes[at...], in that
// order, each taking at least one layer.
double BestCut(const CostModel& model, const std::vector<int64_t>& nodes,
               size_t at, int64_t begin) {
  double best = kInfinity;
  for (int64_t end = begin + 1; end <= model.num_layers(); ++end) {
    const LayerRun run = {begin, end};
    if (!model.Fits(nodes[at], run, 1)) {
      break;
    }
    const double own = model.Seconds(*model.Pass(nodes[at], run), 1);
    const double rest = end == model.num_layers() ? 0
                        : at + 1 == nodes.size()
                            ? kInfinity
                            : BestCut(model, nodes, at + 1, end);
    best = std::min(best, std::max(own, rest));
  }
  return best;
}

struct Optimum {
  double cycle = kInfinity;
  size_t nodes = 0;
};

// Every ordered choice of nodes.
Optimum BruteForce(const CostModel& model) {
  Optimum best;
  std::vector<int64_t> order(model.cluster().nodes.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    for (size_t count = 1; count <= order.size(); ++count) {
      const std::vector<int64_t> nodes(order.begin(), order.begin() + count);
      const double cycle = BestCut(model, nodes, 0, 0);
      const bool equal = cycle <= best.cycle * (1 + 1e-9);
      if (cycle < best.cycle * (1 - 1e-9)) {
        best = {cycle, count};
      } else if (equal && count < best.nodes) {
        best.nodes = count;
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

double CycleOf(const CostModel& model, const Placement& placement) {
  double cycle = 0;
  for (const RouteEntry& entry : placement.route) {
    cycle =
        std::max(cycle, model.Seconds(*model.Pass(entry.node, entry.run()), 1));
  }
  return cycle;
}

// Over thousands of random small clusters and models the placement has the
// least cycle time there is, with the fewest nodes, and fits exactly when any
// placement does.
TEST(PlacementProperty, EqualsBruteForce) {
  std::mt19937_64 random(20260101);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int fitting = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<int64_t> widths;
    for (int64_t i = pick(1, 6); i > 0; --i) {
      widths.push_back(16 * pick(1, 24));
    }
    const model::ModelSpec spec = testing::PlanningModel(widths);
    const model::StageShape shape = testing::SmallShape(64 * pick(1, 8));
    Cluster cluster;
    for (int64_t i = pick(1, 4); i > 0; --i) {
      Node node;
      node.name = std::to_string(i);
      node.memory_bytes = 100'000 * pick(2, 14);
      node.memory_bandwidth = 1e9 * static_cast<double>(pick(1, 3));
      node.compute[kComputeDefault] = 1e11 * static_cast<double>(pick(1, 3));
      cluster.nodes.push_back(node);
    }
    const ModelCosts costs = CostsOfSpec(spec, {shape.kv, shape.prefill_chunk});
    const CostModel model(costs, cluster, shape.context,
                          ScratchOf(spec, shape, 1000));
    const Optimum best = BruteForce(model);
    const auto placement = PlaceContiguous(model, 1);
    ASSERT_EQ(placement.has_value(), best.cycle < kInfinity)
        << "round " << round;
    if (!placement.has_value()) {
      continue;
    }
    ++fitting;
    ASSERT_TRUE(placement->exact);
    ASSERT_NEAR(CycleOf(model, *placement), best.cycle, 1e-9 * best.cycle)
        << "round " << round;
    ASSERT_EQ(placement->route.size(), best.nodes) << "round " << round;
  }
  EXPECT_GT(fitting, 1000);
}

}  // namespace
}  // namespace millrace::planner
