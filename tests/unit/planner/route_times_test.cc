// Times of routes by the definitions: provoked with random clusters, costs and
// routes that meet nodes several times, each compared with plain sums and with
// rows counted up one by one.
#include "planner/route_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "planner/plan_numbers.h"

namespace millrace::planner {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

 private:
  std::mt19937_64 random_;
};

ModelCosts SomeCosts(Dice& dice, bool experts) {
  ModelCosts costs;
  costs.hidden_bytes = dice.Pick(0, 3) * 1000;
  for (int64_t i = dice.Pick(1, 9); i > 0; --i) {
    LayerCost layer;
    layer.weights_bytes = dice.Pick(0, 4) * 1'000'000;
    layer.bytes_per_token = static_cast<double>(dice.Pick(0, 4) * 1'000'000);
    layer.flops_per_token = static_cast<double>(dice.Pick(0, 4) * 1'000'000);
    layer.vectors = dice.Pick(1, 3);
    layer.format = dice.Pick(0, 1) == 0 ? "" : "q8_0";
    if (experts && dice.Pick(0, 1) == 0) {
      layer.experts = {dice.Pick(0, 1) == 0 ? 8 : 64, 2, 100'000};
      layer.bytes_per_token += 200'000;
    }
    costs.layers.push_back(layer);
  }
  costs.last = {1000, 500'000, 250'000};
  return costs;
}

Cluster SomeCluster(Dice& dice) {
  Cluster cluster;
  for (int64_t i = dice.Pick(1, 4); i > 0; --i) {
    Node node;
    node.name = std::to_string(i);
    node.memory_bytes = int64_t{1} << 40;
    node.memory_bandwidth = 1e9 * static_cast<double>(dice.Pick(1, 4));
    node.compute = {{kComputeDefault, 1e9}, {"q8_0", 3e9}};
    cluster.nodes.push_back(node);
  }
  cluster.link_default = {1e6 * static_cast<double>(dice.Pick(1, 9)),
                          1e-5 * static_cast<double>(dice.Pick(0, 900))};
  if (cluster.nodes.size() > 1) {
    cluster.links.push_back({1, 0, {5e5, 1e-3}});
  }
  return cluster;
}

std::vector<RouteEntry> SomeRoute(Dice& dice, const CostModel& model) {
  std::vector<RouteEntry> route;
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    route.push_back({dice.Pick(0, model.num_nodes() - 1), layer, layer});
  }
  return MergeRoute(route);
}

// The definitions, layer by layer.
struct Plain {
  double cycle = 0;
  double loop = 0;
};

double LayerSeconds(const CostModel& model, size_t layer, int64_t node,
                    double rows) {
  const LayerCost& cost = model.costs().layers[layer];
  const Node& hardware = model.cluster().nodes[static_cast<size_t>(node)];
  double bytes = cost.bytes_per_token;
  if (cost.experts.count > 0) {
    const auto all = static_cast<double>(cost.experts.count);
    const auto used = static_cast<double>(cost.experts.used);
    bytes += cost.experts.bytes_each *
             (all * (1 - std::pow(1 - used / all, rows)) - used);
  }
  double seconds =
      rows * cost.flops_per_token / *hardware.ComputeRate(cost.format);
  if (layer + 1 == model.costs().layers.size()) {
    bytes += model.costs().last.bytes_per_token;
    seconds +=
        rows * model.costs().last.flops_per_token / *hardware.ComputeRate("");
  }
  return seconds + bytes / *hardware.memory_bandwidth;
}

Plain PlainTimes(const CostModel& model, const std::vector<RouteEntry>& route,
                 double rows) {
  Plain plain;
  std::map<int64_t, double> nodes;
  std::map<std::pair<int64_t, int64_t>, double> links;
  for (size_t i = 0; i < route.size(); ++i) {
    for (int64_t layer = route[i].first_layer; layer <= route[i].last_layer;
         ++layer) {
      nodes[route[i].node] +=
          LayerSeconds(model, static_cast<size_t>(layer), route[i].node, rows);
    }
    const bool last = i + 1 == route.size();
    const int64_t next = last ? route[0].node : route[i + 1].node;
    if (next == route[i].node) {
      continue;
    }
    const Link& link = model.LinkBetween(route[i].node, next);
    plain.loop += *link.latency_s;
    if (!last) {
      const auto& cut =
          model.costs().layers[static_cast<size_t>(route[i + 1].first_layer)];
      links[{route[i].node, next}] +=
          rows * static_cast<double>(model.costs().hidden_bytes) *
          static_cast<double>(cut.vectors) / *link.bandwidth;
    }
  }
  for (const auto& [node, seconds] : nodes) {
    plain.cycle = std::max(plain.cycle, seconds);
    plain.loop += seconds;
  }
  for (const auto& [link, seconds] : links) {
    plain.cycle = std::max(plain.cycle, seconds);
    plain.loop += seconds;
  }
  return plain;
}

void ExpectPlain(const CostModel& model, const std::vector<RouteEntry>& route,
                 int64_t sequences) {
  const RouteTimes times(model, route);
  ASSERT_TRUE(times.known());
  for (const int64_t rows : {1, 2, 3, 17, 1000}) {
    const Plain plain = PlainTimes(model, route, static_cast<double>(rows));
    EXPECT_NEAR(times.CycleSeconds(rows), plain.cycle, 1e-10 * plain.cycle);
    EXPECT_NEAR(times.LoopSeconds(rows), plain.loop, 1e-10 * plain.loop);
  }
  int64_t rows = 1;
  while (rows * times.Microbatches(rows) < sequences) {
    ++rows;
  }
  EXPECT_EQ(times.RowsFor(sequences), rows) << sequences << " sequences";
}

TEST(RouteTimes, AreTheDefinitions) {
  Dice dice(20261201);
  for (int round = 0; round < 4000; ++round) {
    const ModelCosts costs = SomeCosts(dice, round % 2 == 1);
    const Cluster cluster = SomeCluster(dice);
    const CostModel model(costs, cluster, 4096);
    ExpectPlain(model, SomeRoute(dice, model), dice.Pick(1, 2000));
    if (HasFailure()) {
      FAIL() << "round " << round;
    }
  }
}

// One node fills its own pipeline whatever the rows: as many rows as sequences,
// found without counting up to them.
TEST(RouteTimes, ManySequencesOnOneNode) {
  ModelCosts costs;
  costs.layers.resize(1);
  costs.layers[0].bytes_per_token = 1e9;
  costs.layers[0].flops_per_token = 1e6;
  Cluster cluster;
  cluster.nodes.resize(1);
  cluster.nodes[0].memory_bandwidth = 1e9;
  cluster.nodes[0].compute = {{kComputeDefault, 1e12}};
  const CostModel model(costs, cluster, 1);
  const std::vector<RouteEntry> route = {{0, 0, 0}};
  EXPECT_EQ(RouteTimes(model, route).RowsFor(int64_t{1} << 30),
            int64_t{1} << 30);
}

// What a time needs and the cluster lacks is unknown; what needs nothing is
// not.
TEST(RouteTimes, MissingFieldsAreUnknown) {
  ModelCosts costs;
  costs.hidden_bytes = 100;
  costs.layers.resize(2);
  costs.layers[0].bytes_per_token = 1e9;
  Cluster cluster;
  cluster.nodes.resize(2);
  cluster.nodes[0].memory_bandwidth = 1e9;
  const std::vector<RouteEntry> one = {{0, 0, 1}};
  const std::vector<RouteEntry> two = {{0, 0, 0}, {1, 1, 1}};
  {
    const CostModel model(costs, cluster, 1);
    EXPECT_TRUE(RouteTimes(model, one).known());
    EXPECT_FALSE(RouteTimes(model, two).known());
  }
  cluster.link_default.latency_s = 0;
  {
    const CostModel model(costs, cluster, 1);
    EXPECT_FALSE(RouteTimes(model, two).known());
  }
  cluster.link_default.bandwidth = 1e6;
  costs.layers[1].flops_per_token = 1;
  {
    const CostModel model(costs, cluster, 1);
    EXPECT_FALSE(RouteTimes(model, two).known());
    const RouteTimes times(model, two);
    EXPECT_TRUE(times.nodes()[0].pass.has_value());
    EXPECT_FALSE(times.nodes()[1].pass.has_value());
  }
}

}  // namespace
}  // namespace millrace::planner
