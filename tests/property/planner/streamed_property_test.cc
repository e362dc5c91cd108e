#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/expert_records.h"
#include "planner/planner.h"

// Streamed plans against every route of one run a node, each worked out by the
// definitions in planner/streamed/README.md, layer by layer.

namespace millrace::planner {
namespace {

struct Value {
  double cycle_s = 0;
  double loop_s = 0;
  int64_t nodes = 0;
};

class BruteForce {
 public:
  BruteForce(const ModelCosts& costs, const Cluster& cluster,
             const PlanOptions& options)
      : costs_(costs), cluster_(cluster), options_(options) {
    Visit(0);
  }

  [[nodiscard]] bool fits() const { return fits_; }
  [[nodiscard]] const Value& least() const { return least_; }

  // Seconds of one row; nothing where the node has no room.
  std::optional<double> Segment(const Node& node, int64_t begin,
                                int64_t end) const {
    int64_t trunk = 0;
    int64_t all = 0;
    int64_t records = 0;
    int64_t record = 0;
    int64_t used = 0;
    int64_t disk = 0;
    double read = 0;
    double bytes = 0;
    double operations = 0;
    const auto layers = static_cast<int64_t>(costs_.layers.size());
    for (int64_t i = begin; i < end; ++i) {
      const LayerCost& layer = costs_.layers[static_cast<size_t>(i)];
      const auto each = static_cast<int64_t>(layer.experts.bytes_each);
      const int64_t experts = layer.experts.count * each;
      trunk += layer.weights_bytes - experts +
               options_.sequences() * layer.kv_per_token * options_.contexts[0];
      all += experts;
      bytes += layer.bytes_per_token;
      operations += layer.flops_per_token;
      if (layer.experts.count > 0) {
        const int64_t own = RecordOfKept(each);
        records += layer.experts.count;
        record = std::max(record, own);
        used = std::max(used, layer.experts.used);
        disk += layer.experts.count * own;
        read += static_cast<double>(layer.experts.used * own);
      }
      disk += layer.weights_bytes - experts;
    }
    if (begin == 0) {
      trunk += costs_.first.weights_bytes;
      disk += costs_.first.weights_bytes;
      bytes += costs_.first.bytes_per_token;
    }
    if (end == layers) {
      trunk += costs_.last.weights_bytes;
      disk += costs_.last.weights_bytes;
      bytes += costs_.last.bytes_per_token;
    }
    const double seconds = bytes / *node.memory_bandwidth +
                           operations / node.compute.at("default");
    const int64_t room = node.memory_bytes - trunk;
    if (room >= all) {
      return seconds;
    }
    const int64_t cache = room - 8 * record;
    if (records == 0 || !node.nvme_bandwidth.has_value() ||
        cache < used * record || disk > node.nvme_bytes.value_or(disk)) {
      return std::nullopt;
    }
    const auto held = static_cast<double>(std::min(records, cache / record));
    return seconds + read * (1 - held / static_cast<double>(records)) /
                         *node.nvme_bandwidth;
  }

 private:
  void Visit(size_t layer) {
    if (layer == costs_.layers.size()) {
      Measure();
      return;
    }
    for (size_t node = 0; node < cluster_.nodes.size(); ++node) {
      if (!used_.insert(node).second) {
        continue;
      }
      for (size_t end = layer + 1; end <= costs_.layers.size(); ++end) {
        const auto seconds =
            Segment(cluster_.nodes[node], static_cast<int64_t>(layer),
                    static_cast<int64_t>(end));
        if (seconds.has_value()) {
          route_.push_back({layer, *seconds});
          Visit(end);
          route_.pop_back();
        }
      }
      used_.erase(node);
    }
  }

  void Measure() {
    Value value;
    value.nodes = static_cast<int64_t>(route_.size());
    for (const auto& [layer, seconds] : route_) {
      value.cycle_s = std::max(value.cycle_s, seconds);
      value.loop_s += seconds;
      if (layer > 0) {
        const double hop = static_cast<double>(costs_.hidden_bytes *
                                               costs_.layers[layer].vectors) /
                           *cluster_.link_default.bandwidth;
        value.cycle_s = std::max(value.cycle_s, hop);
        value.loop_s += hop + *cluster_.link_default.latency_s;
      }
    }
    value.loop_s += value.nodes > 1 ? *cluster_.link_default.latency_s : 0;
    if (!fits_) {
      least_ = value;
    }
    fits_ = true;
    least_.cycle_s = std::min(least_.cycle_s, value.cycle_s);
    least_.loop_s = std::min(least_.loop_s, value.loop_s);
    least_.nodes = std::min(least_.nodes, value.nodes);
  }

  const ModelCosts& costs_;
  const Cluster& cluster_;
  const PlanOptions& options_;
  std::set<size_t> used_;
  std::vector<std::pair<size_t, double>> route_;  // first layer, seconds
  bool fits_ = false;
  Value least_;
};

// Models with and without experts in a layer, records of different sizes, nodes
// with much and little memory, with disks, small disks and none.
class Cases {
 public:
  explicit Cases(uint64_t seed) : random_(seed) {}

  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  ModelCosts Costs() {
    ModelCosts costs;
    costs.digest = "sha256:x";
    costs.hidden_bytes = 1000 * Pick(1, 2000);
    const int64_t layers = Pick(1, 6);
    for (int64_t i = 0; i < layers; ++i) {
      LayerCost layer;
      const int64_t trunk = 1'000'000 * Pick(1, 50);
      layer.weights_bytes = trunk;
      layer.bytes_per_token = static_cast<double>(trunk);
      if (i + 1 == layers || Pick(0, 3) > 0) {
        const int64_t each = Pick(1, 3) * 5'000'000;
        layer.experts = {.count = Pick(0, 1) == 0 ? 8 : 16,
                         .used = Pick(1, 2),
                         .bytes_each = static_cast<double>(each)};
        layer.weights_bytes += layer.experts.count * each;
        layer.bytes_per_token += static_cast<double>(layer.experts.used * each);
      }
      layer.kv_per_token = Pick(0, 20'000);
      layer.flops_per_token = 1000 * static_cast<double>(Pick(0, 1000));
      layer.vectors = Pick(1, 3);
      costs.layers.push_back(layer);
    }
    costs.first.weights_bytes = Pick(0, 20'000'000);
    costs.last.weights_bytes = Pick(0, 20'000'000);
    costs.last.bytes_per_token = static_cast<double>(costs.last.weights_bytes);
    return costs;
  }

  Cluster Nodes() {
    Cluster cluster;
    const int64_t nodes = Pick(1, 4);
    for (int64_t i = 0; i < nodes; ++i) {
      Node node;
      if (i > 0 && Pick(0, 2) == 0) {
        node = cluster.nodes.back();
      } else {
        node.memory_bytes = Pick(100, 900) * 1'000'000;
        node.memory_bandwidth = static_cast<double>(Pick(1, 4)) * 1e9;
        node.compute["default"] = static_cast<double>(Pick(1, 4)) * 1e9;
        if (Pick(0, 4) > 0) {
          node.nvme_bandwidth = static_cast<double>(Pick(1, 8)) * 1e8;
        }
        if (Pick(0, 3) == 0) {
          node.nvme_bytes = Pick(200, 2000) * 1'000'000;
        }
      }
      node.name = std::string(1, static_cast<char>('a' + i));
      cluster.nodes.push_back(node);
    }
    cluster.link_default = {
        .bandwidth = 1e8, .latency_s = static_cast<double>(Pick(0, 20)) / 1e3};
    return cluster;
  }

 private:
  std::mt19937_64 random_;
};

TEST(StreamedProperty, IsTheBestOfAllRoutes) {
  Cases cases(20);
  int fit = 0;
  int streamed = 0;
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    const ModelCosts costs = cases.Costs();
    const Cluster cluster = cases.Nodes();
    for (const Objective objective :
         {Objective::kThroughput, Objective::kLatency, Objective::kNodes}) {
      PlanOptions options;
      options.objective = objective;
      options.placement = PlacementKind::kStreamed;
      options.contexts = {cases.Pick(1, 200)};
      const BruteForce brute(costs, cluster, options);
      PlanInput input;
      input.costs = &costs;
      input.cluster = &cluster;
      input.options = &options;
      const absl::StatusOr<Plan> plan = MakePlan(input);
      if (!plan.ok()) {
        for (const Node& node : cluster.nodes) {
          EXPECT_FALSE(node.nvme_bandwidth.has_value()) << plan.status();
        }
        continue;
      }
      ASSERT_EQ(plan->fits, brute.fits()) << plan->verdict;
      if (!plan->fits) {
        continue;
      }
      ++fit;
      EXPECT_EQ(plan->bounds.gap, 0);
      if (objective == Objective::kThroughput) {
        EXPECT_NEAR(*plan->cycle_s / brute.least().cycle_s, 1, 1e-6);
      } else if (objective == Objective::kLatency) {
        EXPECT_NEAR(*plan->loop_s / brute.least().loop_s, 1, 1e-6);
      } else {
        EXPECT_EQ(static_cast<int64_t>(plan->stages.size()),
                  brute.least().nodes);
      }
      for (size_t stage = 0; stage < plan->stages.size(); ++stage) {
        const RouteEntry& entry = plan->route[stage];
        const auto seconds =
            brute.Segment(cluster.nodes[static_cast<size_t>(entry.node)],
                          entry.first_layer, entry.last_layer + 1);
        ASSERT_TRUE(seconds.has_value());
        // Reads count in whole bytes of memory.
        EXPECT_NEAR(*plan->stages[stage].segment_s, *seconds, 1e-7);
        EXPECT_GE(plan->stages[stage].free_bytes, plan->stages[stage].kv_bytes);
        streamed += plan->stages[stage].streamed->hit_share < 1 ? 1 : 0;
      }
    }
  }
  // Of the random cases most fit, and many of those stream.
  EXPECT_GT(fit, 1500);
  EXPECT_GT(streamed, 500);
}

// More kinds of nodes than can be looked at in all choices, with rows that
// follow from the route: a plan that keeps every rule, which is not said to be
// the best.
TEST(StreamedProperty, ManyKinds) {
  Cases cases(21);
  ModelCosts costs = cases.Costs();
  costs.layers.resize(1);
  costs.layers[0].experts = {.count = 8, .used = 2, .bytes_each = 1e7};
  costs.layers[0].weights_bytes = 100'000'000;
  costs.layers.resize(40, costs.layers[0]);
  Cluster cluster = cases.Nodes();
  cluster.nodes.resize(1);
  cluster.nodes[0].nvme_bandwidth = 1e9;
  cluster.nodes[0].nvme_bytes.reset();
  cluster.nodes.resize(40, cluster.nodes[0]);
  for (int64_t i = 0; i < 40; ++i) {
    Node& node = cluster.nodes[static_cast<size_t>(i)];
    node.name = std::to_string(i);
    node.memory_bytes = 1'000'000 * (250 + 10 * i);
  }
  PlanOptions options;
  options.placement = PlacementKind::kStreamed;
  options.contexts = {10};
  options.concurrency = 12;
  PlanInput input;
  input.costs = &costs;
  input.cluster = &cluster;
  input.options = &options;
  const absl::StatusOr<Plan> plan = MakePlan(input);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->fits) << plan->verdict;
  EXPECT_FALSE(plan->bounds.gap.has_value());
  EXPECT_GE(*plan->rows * *plan->microbatches, 12);
  int64_t next = 0;
  for (const RouteEntry& entry : plan->route) {
    EXPECT_EQ(entry.first_layer, next);
    next = entry.last_layer + 1;
  }
  EXPECT_EQ(next, 40);
  for (const PlanStage& stage : plan->stages) {
    EXPECT_GE(stage.free_bytes, stage.kv_bytes);
  }
}

}  // namespace
}  // namespace millrace::planner
