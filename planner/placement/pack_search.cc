#include "planner/placement/pack_search.h"

#include <algorithm>
#include <limits>
#include <map>

#include "planner/placement/node_orders.h"

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Nodes in use times layers up to which the fullest node is looked for.
constexpr int64_t kBestFitMax = 200'000;
// Steps of all that Begin does.
constexpr int64_t kBeginSteps = 5'000'000;
constexpr double kGain = 1e-6;

}  // namespace

PackSearch::PackSearch(const Problem& problem, const Floors& floors,
                       Objective objective, int64_t rows, Judge& judge)
    : problem_(problem),
      floors_(floors),
      objective_(objective),
      judge_(judge),
      packer_(problem, rows) {
  const double guess = 1.2 * std::max(floors.cycle_s(), 1e-30);
  orders_ = NodeOrders(problem, rows, guess);
}

std::optional<Route> PackSearch::PackAnyhow(const Order& order,
                                            const Limits& limits,
                                            int64_t nodes_max) {
  using LayerOrder = Packer::LayerOrder;
  for (const LayerOrder layers :
       {LayerOrder::kMemory, LayerOrder::kTime, LayerOrder::kBoth}) {
    if (layers != LayerOrder::kMemory && !problem_.timed()) {
      break;
    }
    for (const Packer::Fit fit : {Packer::Fit::kFirst, Packer::Fit::kBest}) {
      if (fit == Packer::Fit::kBest &&
          std::min(nodes_max, problem_.nodes_max()) * problem_.num_layers() >
              kBestFitMax) {
        continue;
      }
      auto route = packer_.Pack(order, layers, fit, limits, nodes_max);
      if (route.has_value()) {
        return route;
      }
    }
  }
  return std::nullopt;
}

void PackSearch::OfferLeastCycle(const Order& order, int64_t sequences,
                                 int64_t nodes_max) {
  double low = floors_.cycle_s();
  auto route = PackAnyhow(order, {kInfinity, sequences}, nodes_max);
  if (!route.has_value()) {
    return;
  }
  judge_.Offer(route);
  double high = packer_.SlowestNode(*route);
  while (high > low * (1 + kGain) && packer_.steps() < kBeginSteps) {
    const double middle = low + (high - low) / 2;
    route = PackAnyhow(order, {middle, sequences}, nodes_max);
    if (route.has_value()) {
      judge_.Offer(route);
      high = std::min(middle, packer_.SlowestNode(*route));
    } else {
      low = middle;
    }
  }
}

int64_t PackSearch::OfferMostSequences(const Order& order) {
  // One way of packing at a time: each alone is nearly monotone.
  int64_t most = problem_.sequences();
  for (const Packer::Fit fit : {Packer::Fit::kFirst, Packer::Fit::kBest}) {
    int64_t low = problem_.sequences();
    int64_t high = floors_.most_sequences();
    const auto pack = [&](int64_t sequences) {
      const auto route =
          packer_.Pack(order, Packer::LayerOrder::kMemory, fit,
                       {kInfinity, sequences}, problem_.nodes_max());
      judge_.Offer(route);
      return route.has_value();
    };
    if (!pack(low)) {
      continue;
    }
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      if (pack(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    most = std::max(most, low);
  }
  return most;
}

void PackSearch::Begin() {
  const int64_t n = problem_.sequences();
  const int64_t nodes_max = problem_.nodes_max();
  for (const Order& order : orders_) {
    judge_.Offer(PackAnyhow(order, {kInfinity, n}, nodes_max));
    switch (objective_) {
      case Objective::kConcurrency:
        if (problem_.Need(0, problem_.num_layers()) > 0) {
          const int64_t most = OfferMostSequences(order);
          if (problem_.timed()) {
            OfferLeastCycle(order, most, nodes_max);
          }
          break;
        }
        [[fallthrough]];
      case Objective::kThroughput:
        if (problem_.timed()) {
          OfferLeastCycle(order, n, nodes_max);
        }
        break;
      case Objective::kNodes:
        break;
      case Objective::kLatency:
      case Objective::kEnergy:
        for (int64_t nodes = 1; nodes <= std::min<int64_t>(nodes_max, 64);
             nodes += 1 + nodes / 4) {
          OfferLeastCycle(order, n, nodes);
        }
        break;
    }
  }
}

PackSearch::Order PackSearch::BestOrder() const {
  std::map<int64_t, int64_t> held;
  for (const RouteEntry& entry : judge_.best()->route) {
    held[entry.node] += entry.last_layer - entry.first_layer + 1;
  }
  Order order;
  for (const auto& [node, layers] : held) {
    order.push_back(node);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return held[a] > held[b]; });
  for (const int64_t node : orders_.back()) {
    if (!held.contains(node)) {
      order.push_back(node);
    }
  }
  return order;
}

void PackSearch::FewerNodes(double cycle_s, int64_t steps_max) {
  const int64_t n = problem_.sequences();
  const int64_t floor = floors_.NodesFor(n).value_or(1);
  while (judge_.best()->measures.nodes_used > floor) {
    const int64_t nodes = judge_.best()->measures.nodes_used - 1;
    // The roomiest nodes, or those that hold most by now.
    const auto route = packer_.Repair(judge_.best()->route, BestOrder(),
                                      {cycle_s, n}, nodes, steps_max);
    if (!judge_.Offer(route)) {
      return;
    }
  }
}

void PackSearch::LessCycle(int64_t sequences, int64_t nodes_max,
                           int64_t steps_max) {
  const int64_t steps_end = packer_.steps() + steps_max;
  // The gain asked for at once; halved where it is too much.
  double gain = 0.02;
  Route route = judge_.best()->route;
  double cycle = packer_.SlowestNode(route);
  while (gain > kGain && packer_.steps() < steps_end &&
         cycle > floors_.cycle_s() * (1 + kGain)) {
    const double target = std::max(cycle * (1 - gain), floors_.cycle_s());
    const auto better =
        packer_.Repair(route, BestOrder(), {target * (1 + 1e-12), sequences},
                       nodes_max, steps_max / 8);
    if (!better.has_value()) {
      gain /= 4;
      continue;
    }
    judge_.Offer(better);
    route = *better;
    cycle = packer_.SlowestNode(route);
  }
}

void PackSearch::MoreSequences(int64_t steps_max) {
  const int64_t most = floors_.most_sequences();
  while (judge_.best()->measures.sequences.value_or(most) < most) {
    const int64_t n = *judge_.best()->measures.sequences + 1;
    const auto route =
        packer_.Repair(judge_.best()->route, BestOrder(), {kInfinity, n},
                       problem_.nodes_max(), steps_max);
    if (!judge_.Offer(route)) {
      return;
    }
  }
}

void PackSearch::Improve(int64_t steps_max) {
  if (!judge_.best().has_value()) {
    return;
  }
  const int64_t n = problem_.sequences();
  switch (objective_) {
    case Objective::kThroughput: {
      LessCycle(n, problem_.nodes_max(), steps_max / 2);
      const double cycle =
          packer_.SlowestNode(judge_.best()->route) * (1 + kEqualTimes);
      FewerNodes(cycle, steps_max / 2);
      return;
    }
    case Objective::kConcurrency:
      MoreSequences(steps_max / 2);
      if (problem_.timed()) {
        LessCycle(judge_.best()->measures.sequences.value_or(n),
                  problem_.nodes_max(), steps_max / 2);
      }
      return;
    case Objective::kNodes:
      FewerNodes(kInfinity, steps_max / 2);
      if (problem_.timed()) {
        LessCycle(n, judge_.best()->measures.nodes_used, steps_max / 2);
      }
      return;
    case Objective::kLatency:
    case Objective::kEnergy:
      LessCycle(n, judge_.best()->measures.nodes_used, steps_max);
      return;
  }
}

}  // namespace millrace::planner::placement
