#include "planner/placement/node_orders.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kOrderMax = 20'000;

// All nodes, those with the greatest score first, else as in the cluster.
std::vector<int64_t> SortedBy(
    const Problem& problem,
    const std::function<double(const NodeKind&)>& score) {
  std::vector<double> scores;
  for (const NodeKind& kind : problem.kinds()) {
    const double own = score(kind);
    // Sorting needs an order: what is no number comes last.
    scores.push_back(std::isnan(own) ? -kInfinity : own);
  }
  std::vector<int64_t> order(static_cast<size_t>(problem.model().num_nodes()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[problem.kind_of(a)] > scores[problem.kind_of(b)];
  });
  if (order.size() > kOrderMax) {
    order.resize(kOrderMax);
  }
  return order;
}

Route SplitBy(const Problem& problem, const std::vector<int64_t>& order,
              const std::function<double(int64_t)>& share) {
  double total = 0;
  for (const int64_t node : order) {
    total += share(node);
  }
  Route route;
  double sum = 0;
  int64_t begin = 0;
  const auto layers = static_cast<double>(problem.num_layers());
  for (const int64_t node : order) {
    sum += share(node);
    const int64_t end =
        std::min(problem.num_layers(),
                 static_cast<int64_t>(std::nearbyint(sum * layers / total)));
    if (end > begin) {
      route.push_back({node, begin, end - 1});
      begin = end;
    }
  }
  return begin == problem.num_layers() ? route : Route();
}

}  // namespace

std::vector<std::vector<int64_t>> NodeOrders(const Problem& problem,
                                             int64_t rows, double cycle_s) {
  const Problem::RowCosts& costs = problem.At(rows);
  const int64_t layers = problem.num_layers();
  const auto memory =
      static_cast<double>(problem.RunBytes(0, layers, problem.sequences()));
  const auto seconds = [&](const NodeKind& kind) {
    return problem.Seconds(kind, costs, 0, layers);
  };
  std::vector<std::vector<int64_t>> orders;
  orders.push_back(SortedBy(problem, [](const NodeKind&) { return 0; }));
  orders.push_back(SortedBy(problem, [](const NodeKind& kind) {
    return static_cast<double>(kind.room);
  }));
  if (!problem.timed()) {
    return orders;
  }
  orders.push_back(
      SortedBy(problem, [](const NodeKind& kind) { return -kind.byte_s; }));
  orders.push_back(
      SortedBy(problem, [&](const NodeKind& kind) { return -seconds(kind); }));
  orders.push_back(SortedBy(problem, [&](const NodeKind& kind) {
    return std::min(static_cast<double>(kind.room) / memory,
                    cycle_s / seconds(kind));
  }));
  orders.push_back(SortedBy(problem, [&](const NodeKind& kind) {
    return -seconds(kind) * kind.power_w;
  }));
  return orders;
}

std::vector<Route> SimpleSplits(const Problem& problem,
                                const std::vector<int64_t>& order) {
  const size_t usable = std::min(
      order.size(), static_cast<size_t>(std::max<int64_t>(
                        0, problem.model().num_nodes() -
                               problem.model().cluster().SpareNodes())));
  const std::vector<int64_t> nodes(
      order.begin(), order.begin() + static_cast<ptrdiff_t>(usable));
  std::vector<Route> routes;
  routes.push_back(SplitBy(problem, nodes, [](int64_t) { return 1.0; }));
  routes.push_back(SplitBy(problem, nodes, [&](int64_t node) {
    return static_cast<double>(problem.model()
                                   .cluster()
                                   .nodes[static_cast<size_t>(node)]
                                   .memory_bytes);
  }));
  // Evenly over as many nodes as there are, or layers, whichever is less.
  const std::vector<int64_t> first(
      nodes.begin(),
      nodes.begin() +
          static_cast<ptrdiff_t>(std::min(
              nodes.size(), static_cast<size_t>(problem.num_layers()))));
  routes.push_back(SplitBy(problem, first, [](int64_t) { return 1.0; }));
  return routes;
}

}  // namespace millrace::planner::placement
