#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/criteria.h"
#include "planner/placement/place.h"
#include "planner/plan_numbers.h"

namespace millrace::planner {
namespace {

using placement::Place;
using placement::Placement;
using placement::PlacementOptions;

constexpr Objective kObjectives[] = {
    Objective::kThroughput, Objective::kConcurrency, Objective::kLatency,
    Objective::kNodes, Objective::kEnergy};

// Random small inputs, drawn so that ties, full nodes and slow links are
// common.
class Cases {
 public:
  explicit Cases(uint64_t seed) : random_(seed) {}

  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  ModelCosts Costs(int64_t layers) {
    ModelCosts costs;
    costs.hidden_bytes = 1000 * Pick(0, 2);
    const bool free_layers = Pick(0, 9) == 0;
    for (int64_t i = 0; i < layers; ++i) {
      LayerCost layer;
      layer.weights_bytes = 1000 * Pick(1, 4);
      layer.kv_per_token = Pick(0, 2);
      layer.state_per_sequence = 10 * Pick(0, 3);
      layer.bytes_per_token = free_layers ? 0
                              : Pick(0, 3) == 0
                                  ? 500.0 * static_cast<double>(Pick(0, 4))
                                  : static_cast<double>(layer.weights_bytes);
      layer.flops_per_token =
          free_layers ? 0 : 1000.0 * static_cast<double>(Pick(0, 3));
      layer.vectors = Pick(0, 5) == 0 ? Pick(0, 4) : 1;
      costs.layers.push_back(layer);
    }
    costs.first = {500 * Pick(0, 4), 0, 0};
    costs.last = {500 * Pick(0, 4), 300.0 * static_cast<double>(Pick(0, 3)),
                  1000.0 * static_cast<double>(Pick(0, 2))};
    costs.shared_weights_bytes =
        Pick(0, 4) == 0
            ? std::min(costs.first.weights_bytes, costs.last.weights_bytes)
            : 0;
    return costs;
  }

  Cluster Nodes(int64_t nodes, int64_t layers) {
    Cluster cluster;
    const int64_t kinds = Pick(1, 3);
    for (int64_t i = 0; i < nodes; ++i) {
      Node node;
      node.name = std::to_string(i);
      const int64_t kind = Pick(1, kinds);
      node.memory_bytes = 1500 * (kind + Pick(0, layers + 2));
      node.memory_bandwidth = 1000.0 * static_cast<double>(kind);
      node.compute["default"] = 2000.0 * static_cast<double>(Pick(1, kinds));
      node.power_w = 10.0 * static_cast<double>(Pick(1, 1 + kinds));
      node.labels["rack"] = Pick(0, 1) == 0 ? "a" : "b";
      node.labels["zone"] = Pick(0, 2) == 0 ? "x" : "y";
      if (i > 0 && Pick(0, 1) == 0) {
        const std::string name = node.name;
        node = cluster.nodes.back();
        node.name = name;
      }
      cluster.nodes.push_back(node);
    }
    cluster.link_default = {1000.0 * static_cast<double>(Pick(1, 4)),
                            0.1 * static_cast<double>(Pick(0, 4))};
    for (int64_t a = 0; a < nodes; ++a) {
      for (int64_t b = a + 1; b < nodes && Pick(0, 3) == 0; ++b) {
        cluster.links.push_back({a,
                                 b,
                                 {500.0 * static_cast<double>(Pick(1, 8)),
                                  0.05 * static_cast<double>(Pick(0, 10))}});
      }
    }
    cluster.reserve_bytes = 100 * Pick(0, 3);
    if (Pick(0, 2) == 0) {
      AddRules(layers, cluster);
    }
    return cluster;
  }

 private:
  void AddRules(int64_t layers, Cluster& cluster) {
    for (int64_t i = Pick(1, 2); i > 0; --i) {
      Constraint rule;
      rule.first_layer = Pick(0, layers - 1);
      rule.last_layer = Pick(*rule.first_layer, layers);
      rule.labels["rack"] = Pick(0, 1) == 0 ? "a" : "b";
      if (Pick(0, 1) == 0) {
        rule.labels["zone"] = "y";
      }
      cluster.constraints.push_back(rule);
    }
    Constraint spare;
    spare.spare_nodes = Pick(0, 1);
    cluster.constraints.push_back(spare);
  }

  std::mt19937_64 random_;
};

// Every route there is, measured by MeasureRoute.
class BruteForce {
 public:
  BruteForce(const CostModel& model, const std::vector<Criterion>& criteria,
             std::optional<int64_t> concurrency, bool interleaved)
      : model_(model),
        criteria_(criteria),
        concurrency_(concurrency),
        interleaved_(interleaved) {
    Visit(0);
  }

  [[nodiscard]] const std::optional<Measures>& best() const { return best_; }

 private:
  void Visit(int64_t layer) {
    if (layer == model_.num_layers()) {
      Measure();
      return;
    }
    for (int64_t node = 0; node < model_.num_nodes(); ++node) {
      if (!interleaved_ && used_.contains(node)) {
        continue;
      }
      const int64_t end_max = interleaved_ ? layer + 1 : model_.num_layers();
      const bool is_new = used_.insert(node).second;
      for (int64_t end = layer + 1; end <= end_max; ++end) {
        if (model_.Allows(node, {layer, end})) {
          route_.push_back({node, layer, end - 1});
          Visit(end);
          route_.pop_back();
        }
      }
      if (is_new) {
        used_.erase(node);
      }
    }
  }

  void Measure() {
    const std::vector<RouteEntry> route = MergeRoute(route_);
    const std::vector<NodeRuns> nodes = RunsByNode(route);
    if (static_cast<int64_t>(nodes.size()) >
        model_.num_nodes() - model_.cluster().SpareNodes()) {
      return;
    }
    for (const NodeRuns& node : nodes) {
      if (!model_.Fits(node.node, node.runs, concurrency_.value_or(1))) {
        return;
      }
    }
    const Measures own = MeasureRoute(model_, route, concurrency_);
    if (!best_.has_value() || Compare(criteria_, own, *best_) < 0) {
      best_ = own;
    }
  }

  const CostModel& model_;
  const std::vector<Criterion>& criteria_;
  const std::optional<int64_t> concurrency_;
  const bool interleaved_;
  std::set<int64_t> used_;
  std::vector<RouteEntry> route_;
  std::optional<Measures> best_;
};

// The placement keeps every rule; returns what the objective compares of it.
Measures CheckRules(const CostModel& model, const PlacementOptions& options,
                    const Placement& placement) {
  int64_t next = 0;
  for (const RouteEntry& entry : placement.route) {
    EXPECT_EQ(entry.first_layer, next);
    EXPECT_LE(entry.first_layer, entry.last_layer);
    EXPECT_TRUE(model.Allows(entry.node, entry.run()));
    next = entry.last_layer + 1;
  }
  EXPECT_EQ(next, model.num_layers());
  const std::vector<NodeRuns> nodes = RunsByNode(placement.route);
  for (const NodeRuns& node : nodes) {
    EXPECT_TRUE(
        model.Fits(node.node, node.runs, options.concurrency.value_or(1)));
  }
  EXPECT_LE(static_cast<int64_t>(nodes.size()),
            model.num_nodes() - model.cluster().SpareNodes());
  if (placement.kind == PlacementKind::kContiguous) {
    EXPECT_EQ(nodes.size(), placement.route.size());
  }
  EXPECT_NE(placement.kind, PlacementKind::kAuto);
  return MeasureRoute(model, placement.route, options.concurrency);
}

// No bound is beyond what the best route reaches.
void CheckBounds(const Placement& placement, const Measures& best) {
  const Bounds& bounds = placement.bounds;
  if (placement.exact) {
    EXPECT_EQ(bounds.gap, 0.0);
  }
  if (bounds.gap.has_value()) {
    EXPECT_GE(*bounds.gap, 0);
    EXPECT_LT(*bounds.gap, 1);
  }
  EXPECT_LE(*bounds.nodes_used, best.nodes_used);
  if (best.sequences.has_value() && bounds.sequences.has_value()) {
    EXPECT_GE(*bounds.sequences, *best.sequences);
  }
  if (bounds.cycle_s.has_value()) {
    EXPECT_LE(*bounds.cycle_s, *best.cycle_s * (1 + kEqualTimes));
  }
  if (bounds.tokens_per_s.has_value() && best.tokens_per_s.has_value()) {
    EXPECT_GE(*bounds.tokens_per_s, *best.tokens_per_s * (1 - kEqualTimes));
  }
}

void CheckCase(const ModelCosts& costs, const Cluster& cluster, int64_t context,
               const PlacementOptions& options) {
  const CostModel model(costs, cluster, context);
  const auto criteria = CriteriaOf(options.objective, model);
  ASSERT_TRUE(criteria.ok());
  const bool contiguous = options.placement == PlacementKind::kContiguous;
  const BruteForce all(model, *criteria, options.concurrency, !contiguous);
  const auto placed = Place(model, options);
  ASSERT_TRUE(placed.ok()) << placed.status();
  ASSERT_EQ(placed->has_value(), all.best().has_value());
  if (!placed->has_value()) {
    return;
  }
  const Measures own = CheckRules(model, options, **placed);
  EXPECT_EQ(Compare(*criteria, own, *all.best()), 0)
      << "nodes " << own.nodes_used << " for " << all.best()->nodes_used
      << ", cycle " << own.cycle_s.value_or(-1) << " for "
      << all.best()->cycle_s.value_or(-1) << ", loop "
      << own.loop_s.value_or(-1) << " for " << all.best()->loop_s.value_or(-1)
      << ", sequences " << own.sequences.value_or(-1) << " for "
      << all.best()->sequences.value_or(-1);
  EXPECT_TRUE((*placed)->exact);
  CheckBounds(**placed, *all.best());
  if (options.placement == PlacementKind::kAuto) {
    const BruteForce runs(model, *criteria, options.concurrency, false);
    const bool as_good = runs.best().has_value() &&
                         Compare(*criteria, *runs.best(), *all.best()) == 0;
    EXPECT_EQ((*placed)->kind == PlacementKind::kContiguous, as_good);
  }
}

// Over thousands of random small clusters and models the placement is the best
// there is by every criterion of every objective, keeps every rule, and exists
// exactly when any does.
TEST(PlaceProperty, EqualsBruteForce) {
  Cases cases(20260202);
  for (int round = 0; round < 1000; ++round) {
    for (const PlacementKind kind :
         {PlacementKind::kContiguous, PlacementKind::kInterleaved,
          PlacementKind::kAuto}) {
      const bool contiguous = kind == PlacementKind::kContiguous;
      const int64_t layers = cases.Pick(1, contiguous ? 6 : 5);
      const int64_t nodes = cases.Pick(1, contiguous ? 4 : 3);
      const ModelCosts costs = cases.Costs(layers);
      const Cluster cluster = cases.Nodes(nodes, layers);
      PlacementOptions options;
      options.placement = kind;
      if (cases.Pick(0, 1) == 0) {
        options.concurrency = cases.Pick(1, 12);
      }
      const int64_t context = cases.Pick(1, 100);
      for (const Objective objective : kObjectives) {
        options.objective = objective;
        SCOPED_TRACE(testing::Message()
                     << "round " << round << " objective "
                     << static_cast<int>(objective) << " placement "
                     << static_cast<int>(kind) << " concurrency "
                     << options.concurrency.value_or(0));
        CheckCase(costs, cluster, context, options);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace::planner
