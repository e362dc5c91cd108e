#include "planner/placement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/segment_cuts.h"

namespace millrace::planner {
namespace {

// Multisets of node kinds that are still enumerated.
constexpr int64_t kStatesMax = 20'000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kBisections = 60;

// A model and the sequences that must fit.
struct StageModel {
  const CostModel& model;
  int64_t sequences = 1;

  [[nodiscard]] int64_t num_layers() const { return model.num_layers(); }
  [[nodiscard]] const Cluster& cluster() const { return model.cluster(); }
  [[nodiscard]] bool Fits(int64_t node, int64_t begin, int64_t end) const {
    return model.Fits(node, LayerRun{begin, end}, sequences) &&
           model.Allows(node, {begin, end});
  }
};

// Nodes that cannot be told apart.
struct NodeKind {
  std::vector<int64_t> nodes;
  [[nodiscard]] int64_t count() const {
    return static_cast<int64_t>(nodes.size());
  }
};

std::vector<NodeKind> KindsOf(const Cluster& cluster, int64_t num_layers) {
  std::vector<bool> special(cluster.nodes.size(), false);
  for (const NodePairLink& pair : cluster.links) {
    special[static_cast<size_t>(pair.node_a)] = true;
    special[static_cast<size_t>(pair.node_b)] = true;
  }
  using Key = std::tuple<int64_t, double, double, int64_t>;
  std::map<Key, NodeKind> kinds;
  for (size_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    NodeKind& kind =
        kinds[{-node.memory_bytes, -node.memory_bandwidth.value_or(0),
               -node.ComputeRate(kComputeDefault).value_or(0),
               special[i] ? static_cast<int64_t>(i) + 1 : 0}];
    // A route has at most one node a layer.
    if (kind.count() < num_layers) {
      kind.nodes.push_back(static_cast<int64_t>(i));
    }
  }
  std::vector<NodeKind> list;
  list.reserve(kinds.size());
  for (auto& [key, kind] : kinds) {
    list.push_back(std::move(kind));
  }
  return list;
}

// Time used to compare placements: seconds, or bytes where speeds are unknown
// (every node then counts as equally fast).
double Cost(const StageModel& stages, int64_t node, int64_t begin,
            int64_t end) {
  const std::optional<PassCost> pass = stages.model.Pass(node, {begin, end});
  return pass.has_value() ? stages.model.Seconds(*pass, 1)
                          : stages.model.NominalCost({begin, end});
}

// For a bound on the cycle: how far each multiset of nodes can reach from layer
// 0 when every node takes all it can. Reaching farther never hurts, so that
// the farthest reach per multiset is enough.
class ReachTable {
 public:
  ReachTable(const StageModel& stages, const std::vector<NodeKind>& kinds)
      : stages_(stages), kinds_(kinds) {
    for (const NodeKind& kind : kinds) {
      strides_.push_back(num_states_);
      num_states_ *= kind.count() + 1;
      if (num_states_ > kStatesMax) {
        return;
      }
    }
    reach_.resize(static_cast<size_t>(num_states_));
    last_kind_.resize(static_cast<size_t>(num_states_));
  }

  [[nodiscard]] bool small_enough() const { return num_states_ <= kStatesMax; }

  // Node kinds in the order of a route within `cycle`, fewest nodes first;
  // empty when there is none.
  std::vector<int64_t> Search(double cycle, int64_t nodes_max) {
    int64_t best = -1;
    int64_t best_count = nodes_max + 1;
    for (int64_t state = 0; state < num_states_; ++state) {
      const int64_t count = Fill(state, cycle);
      if (reach_[static_cast<size_t>(state)] == stages_.num_layers() &&
          count < best_count) {
        best = state;
        best_count = count;
      }
    }
    std::vector<int64_t> order;
    while (best > 0) {
      const int64_t kind = last_kind_[static_cast<size_t>(best)];
      order.push_back(kind);
      best -= strides_[static_cast<size_t>(kind)];
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  // Sets reach_[state] from the states with one node less; returns the number
  // of nodes in it.
  int64_t Fill(int64_t state, double cycle) {
    int64_t farthest = 0;
    int64_t count = 0;
    int64_t by_kind = -1;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      const int64_t digit = state / strides_[kind] % (kinds_[kind].count() + 1);
      count += digit;
      if (digit == 0) {
        continue;
      }
      const int64_t begin = reach_[static_cast<size_t>(state - strides_[kind])];
      const int64_t end = Extend(kinds_[kind].nodes[0], begin, cycle);
      if (end > farthest) {
        farthest = end;
        by_kind = static_cast<int64_t>(kind);
      }
    }
    reach_[static_cast<size_t>(state)] = farthest;
    last_kind_[static_cast<size_t>(state)] = by_kind;
    return count;
  }

  // Last layer + 1 that the node reaches from `begin`; need and time rise with
  // every layer, so that bisection finds it.
  [[nodiscard]] int64_t Extend(int64_t node, int64_t begin,
                               double cycle) const {
    int64_t low = begin;
    int64_t high = stages_.num_layers();
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (stages_.Fits(node, begin, middle) &&
          Cost(stages_, node, begin, middle) <= cycle) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  const StageModel& stages_;
  const std::vector<NodeKind>& kinds_;
  int64_t num_states_ = 1;
  std::vector<int64_t> strides_;
  std::vector<int64_t> reach_;
  std::vector<int64_t> last_kind_;
};

// The best cut for nodes in a given order.
std::optional<std::vector<RouteEntry>> CutFor(const StageModel& stages,
                                              const std::vector<int64_t>& nodes,
                                              double* slowest) {
  const auto cuts = CutSegments(
      stages.num_layers(), static_cast<int64_t>(nodes.size()),
      [&](int64_t stage, int64_t begin, int64_t end) -> std::optional<double> {
        const int64_t node = nodes[static_cast<size_t>(stage)];
        if (!stages.Fits(node, begin, end)) {
          return std::nullopt;
        }
        return Cost(stages, node, begin, end);
      });
  if (!cuts.has_value()) {
    return std::nullopt;
  }
  std::vector<RouteEntry> route;
  *slowest = 0;
  for (size_t stage = 0; stage < nodes.size(); ++stage) {
    const int64_t end =
        stage + 1 == nodes.size() ? stages.num_layers() : (*cuts)[stage + 1];
    route.push_back({nodes[stage], (*cuts)[stage], end - 1});
    *slowest =
        std::max(*slowest, Cost(stages, nodes[stage], (*cuts)[stage], end));
  }
  return route;
}

std::vector<int64_t> NodesOf(const std::vector<NodeKind>& kinds,
                             const std::vector<int64_t>& order) {
  std::vector<size_t> used(kinds.size(), 0);
  std::vector<int64_t> nodes;
  nodes.reserve(order.size());
  for (const int64_t kind : order) {
    nodes.push_back(kinds[static_cast<size_t>(kind)]
                        .nodes[used[static_cast<size_t>(kind)]++]);
  }
  return nodes;
}

std::optional<Placement> PlaceExactly(const StageModel& stages,
                                      const std::vector<NodeKind>& kinds,
                                      ReachTable& table, int64_t nodes_max) {
  std::vector<int64_t> order = table.Search(kInfinity, nodes_max);
  if (order.empty()) {
    return std::nullopt;
  }
  double cycle = 0;
  auto route = CutFor(stages, NodesOf(kinds, order), &cycle);
  double low = 0;
  for (int step = 0; step < kBisections && route.has_value(); ++step) {
    const double middle = (low + cycle) / 2;
    const std::vector<int64_t> better = table.Search(middle, nodes_max);
    if (better.empty()) {
      low = middle;
      continue;
    }
    order = better;
    route = CutFor(stages, NodesOf(kinds, order), &cycle);
  }
  // Fewest nodes at that cycle; a hair more for the rounding of sums.
  const std::vector<int64_t> fewest =
      table.Search(cycle * (1 + 1e-12), nodes_max);
  if (!fewest.empty() && fewest.size() < order.size()) {
    route = CutFor(stages, NodesOf(kinds, fewest), &cycle);
  }
  if (!route.has_value()) {
    return std::nullopt;
  }
  return Placement{*std::move(route), true};
}

// Many kinds of nodes: the fastest first, as many as help.
std::optional<Placement> PlaceBySpeed(const StageModel& stages,
                                      int64_t nodes_max) {
  const int64_t layers = stages.num_layers();
  std::vector<int64_t> nodes(stages.cluster().nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::stable_sort(nodes.begin(), nodes.end(), [&](int64_t a, int64_t b) {
    const double cost_a = Cost(stages, a, 0, layers);
    const double cost_b = Cost(stages, b, 0, layers);
    return cost_a != cost_b
               ? cost_a < cost_b
               : stages.model.Available(a) > stages.model.Available(b);
  });
  const int64_t most = std::min(
      {layers, nodes_max, static_cast<int64_t>(nodes.size()), int64_t{64}});
  std::optional<Placement> best;
  double best_cycle = kInfinity;
  for (int64_t count = 1; count <= most; ++count) {
    double cycle = 0;
    auto route = CutFor(
        stages, std::vector<int64_t>(nodes.begin(), nodes.begin() + count),
        &cycle);
    if (route.has_value() && cycle < best_cycle) {
      best_cycle = cycle;
      best = Placement{*std::move(route), false};
    }
  }
  return best;
}

}  // namespace

std::optional<Placement> PlaceContiguous(const CostModel& model,
                                         int64_t sequences) {
  const StageModel stages{model, sequences};
  const int64_t nodes_max = model.num_nodes() - model.cluster().SpareNodes();
  const std::vector<NodeKind> kinds =
      KindsOf(stages.cluster(), stages.num_layers());
  ReachTable table(stages, kinds);
  return table.small_enough() ? PlaceExactly(stages, kinds, table, nodes_max)
                              : PlaceBySpeed(stages, nodes_max);
}

}  // namespace millrace::planner
