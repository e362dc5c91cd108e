#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "planner/criteria.h"
#include "planner/plan_numbers.h"
#include "planner/replan/replan.h"
#include "planner/replan/survivors.h"

// Re-planning against every route there is: fewest bytes, then the objective.

namespace millrace::planner {
namespace {

using replan::HeldLayers;
using replan::kNobody;
using replan::Replanned;

// Bytes that a set of ends and layers holds, by the definition.
int64_t Held(const ModelCosts& costs, const std::set<int64_t>& layers) {
  const auto last = static_cast<int64_t>(costs.layers.size()) - 1;
  int64_t bytes = 0;
  for (const int64_t layer : layers) {
    bytes += costs.layers[static_cast<size_t>(layer)].weights_bytes;
  }
  bytes += layers.contains(0) ? costs.first.weights_bytes : 0;
  bytes += layers.contains(last) ? costs.last.weights_bytes : 0;
  return bytes - (layers.contains(0) && layers.contains(last)
                      ? costs.shared_weights_bytes
                      : 0);
}

// Of a route: what each node holds afterwards beyond what it held.
int64_t MovedByDefinition(const CostModel& model,
                          const std::vector<int64_t>& holders,
                          const std::vector<RouteEntry>& route) {
  int64_t bytes = 0;
  for (int64_t node = 0; node < model.num_nodes(); ++node) {
    std::set<int64_t> before;
    for (size_t i = 0; i < holders.size(); ++i) {
      if (holders[i] == node) {
        before.insert(static_cast<int64_t>(i));
      }
    }
    std::set<int64_t> both = before;
    for (const RouteEntry& entry : route) {
      for (int64_t i = entry.first_layer;
           entry.node == node && i <= entry.last_layer; ++i) {
        both.insert(i);
      }
    }
    bytes += Held(model.costs(), both) - Held(model.costs(), before);
  }
  return bytes;
}

struct Best {
  int64_t bytes = 0;
  Measures measures;
};

class BruteForce {
 public:
  BruteForce(const CostModel& model, const std::vector<Criterion>& criteria,
             const PlanOptions& options, const std::vector<int64_t>& holders)
      : model_(model),
        criteria_(criteria),
        options_(options),
        holders_(holders) {
    Visit(0);
  }
  [[nodiscard]] const std::optional<Best>& best() const { return best_; }

 private:
  void Visit(int64_t layer) {
    if (layer == model_.num_layers()) {
      Measure();
      return;
    }
    for (int64_t node = 0; node < model_.num_nodes(); ++node) {
      if (model_.Allows(node, {layer, layer + 1})) {
        route_.push_back({node, layer, layer});
        Visit(layer + 1);
        route_.pop_back();
      }
    }
  }

  void Measure() {
    const std::vector<RouteEntry> route = MergeRoute(route_);
    const std::vector<NodeRuns> nodes = RunsByNode(route);
    if ((options_.placement == PlacementKind::kContiguous &&
         nodes.size() != route.size()) ||
        static_cast<int64_t>(nodes.size()) >
            model_.num_nodes() - model_.cluster().SpareNodes()) {
      return;
    }
    for (const NodeRuns& node : nodes) {
      if (!model_.Fits(node.node, node.runs, options_.sequences())) {
        return;
      }
    }
    const Best own = {MovedByDefinition(model_, holders_, route),
                      MeasureRoute(model_, route, options_.concurrency)};
    if (!best_.has_value() || own.bytes < best_->bytes ||
        (own.bytes == best_->bytes &&
         Compare(criteria_, own.measures, best_->measures) < 0)) {
      best_ = own;
    }
  }

  const CostModel& model_;
  const std::vector<Criterion>& criteria_;
  const PlanOptions& options_;
  const std::vector<int64_t>& holders_;
  std::vector<RouteEntry> route_;
  std::optional<Best> best_;
};

// Random plans, tight or ample, with ties, tied heads, spares and labels.
class Cases {
 public:
  explicit Cases(uint64_t seed) : random_(seed) {}

  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  PlanFile File() {
    PlanFile file;
    const int64_t layers = Pick(1, 6);
    const int64_t nodes = Pick(2, 4);
    file.costs.hidden_bytes = 100;
    for (int64_t i = 0; i < layers; ++i) {
      LayerCost layer;
      layer.weights_bytes = 1000 * Pick(Pick(0, 9) == 0 ? 0 : 1, 3);
      layer.kv_per_token = Pick(0, 2);
      layer.bytes_per_token = static_cast<double>(layer.weights_bytes);
      file.costs.layers.push_back(layer);
    }
    file.costs.first = {500 * Pick(0, 4), 0, 0};
    file.costs.last = {500 * Pick(0, 4), 300, 0};
    file.costs.shared_weights_bytes =
        Pick(0, 2) == 0 ? std::min(file.costs.first.weights_bytes,
                                   file.costs.last.weights_bytes)
                        : 0;
    for (int64_t i = 0; i < nodes; ++i) {
      Node node;
      node.name = std::to_string(i);
      node.memory_bytes = 1500 * Pick(1, layers + 6);
      node.memory_bandwidth = 1000.0 * static_cast<double>(Pick(1, 2));
      node.compute["default"] = 2000;
      node.power_w = 10;
      node.labels["rack"] = Pick(0, 2) == 0 ? "a" : "b";
      file.cluster.nodes.push_back(node);
    }
    file.cluster.link_default = {1000, 0.1 * static_cast<double>(Pick(0, 2))};
    if (Pick(0, 3) == 0) {
      Constraint rule;
      rule.first_layer = rule.last_layer = Pick(0, layers - 1);
      rule.labels["rack"] = "b";
      file.cluster.constraints.push_back(rule);
    }
    Constraint spare;
    spare.spare_nodes = Pick(0, 2) == 0 ? 1 : 0;
    file.cluster.constraints.push_back(spare);
    constexpr Objective kAll[] = {Objective::kThroughput,
                                  Objective::kConcurrency, Objective::kLatency,
                                  Objective::kNodes, Objective::kEnergy};
    file.options.objective = kAll[Pick(0, 4)];
    file.options.placement = static_cast<PlacementKind>(Pick(0, 2));
    file.options.contexts = {Pick(1, 400)};
    if (Pick(0, 1) == 0) {
      file.options.concurrency = Pick(1, 3);
    }
    // A route of the kind asked for; it need not be a good one.
    const int64_t runs = Pick(1, layers);
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t node = file.options.placement == PlacementKind::kContiguous
                               ? std::min(nodes - 1, i * runs / layers)
                               : Pick(0, nodes - 1);
      file.plan.route.push_back({node, i, i});
    }
    file.plan.route = MergeRoute(file.plan.route);
    file.plan.fits = true;
    return file;
  }

 private:
  std::mt19937_64 random_;
};

TEST(ReplanPropertyTest, FewestBytesThenTheObjective) {
  int fit = 0;
  int beyond_bound = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    Cases cases(seed);
    const PlanFile file = cases.File();
    const auto nodes = static_cast<int64_t>(file.cluster.nodes.size());
    const std::vector<int64_t> lost = {cases.Pick(0, nodes - 1)};
    const absl::StatusOr<Replanned> got = replan::PlanWithoutNodes(file, lost);
    ASSERT_TRUE(got.ok()) << got.status();
    const replan::Survivors survivors =
        replan::WithoutNodes(file.cluster, lost);
    const CostModel model(file.costs, survivors.cluster,
                          file.options.contexts[0]);
    const std::vector<int64_t> holders =
        replan::HoldersOf(file.plan.route, survivors, model.num_layers());
    const auto criteria = CriteriaOf(file.options.objective, model);
    ASSERT_TRUE(criteria.ok());
    const BruteForce brute(model, *criteria, file.options, holders);
    ASSERT_EQ(got->plan.fits, brute.best().has_value());
    if (!got->plan.fits) {
      EXPECT_FALSE(got->plan.verdict.empty());
      continue;
    }
    ++fit;
    EXPECT_TRUE(got->exact);
    EXPECT_EQ(got->moved.bytes, brute.best()->bytes);
    EXPECT_EQ(got->bound_bytes, got->moved.bytes);
    EXPECT_EQ(MovedByDefinition(model, holders, got->plan.route),
              got->moved.bytes);
    EXPECT_EQ(
        Compare(*criteria,
                MeasureRoute(model, got->plan.route, file.options.concurrency),
                brute.best()->measures),
        0);
    EXPECT_EQ(MovedByDefinition(model, holders, got->best.route),
              got->best_moved.bytes);
    EXPECT_LE(
        Compare(*criteria,
                MeasureRoute(model, got->best.route, file.options.concurrency),
                MeasureRoute(model, got->plan.route, file.options.concurrency)),
        0);
    const int64_t least = HeldLayers(model, holders).LeastBytes();
    EXPECT_LE(least, got->moved.bytes);
    beyond_bound += least < got->moved.bytes ? 1 : 0;
  }
  // Both easy and tight cases were met.
  EXPECT_GT(fit, 300);
  EXPECT_GT(beyond_bound, 30);
}

}  // namespace
}  // namespace millrace::planner
