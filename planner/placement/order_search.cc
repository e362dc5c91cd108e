#include "planner/placement/order_search.h"

#include <algorithm>
#include <limits>

#include "planner/placement/node_orders.h"

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Orders times layers for which the least loop is worked out exactly.
constexpr size_t kLoopCellsMax = 500'000;
// Nodes beside those in use that a climb exchanges them for.
constexpr size_t kOrderMax = 1'000;
// Gains below this are not looked for.
constexpr double kGain = 1e-6;

}  // namespace

OrderSearch::OrderSearch(const Problem& problem, const Floors& floors,
                         Objective objective, int64_t rows, Judge& judge)
    : problem_(problem),
      floors_(floors),
      objective_(objective),
      judge_(judge),
      fill_(problem, rows),
      random_(1) {}

void OrderSearch::Begin() {
  const double guess = 1.2 * std::max(floors_.cycle_s(), 1e-30);
  for (std::vector<int64_t>& order :
       NodeOrders(problem_, fill_.rows(), guess)) {
    for (const Route& route : SimpleSplits(problem_, order)) {
      if (!route.empty()) {
        judge_.Offer(route);
      }
    }
    OfferOrder(order);
    rest_ = std::move(order);
  }
}

void OrderSearch::OfferOrder(const std::vector<int64_t>& order) {
  const int64_t nodes_max = problem_.nodes_max();
  int64_t n = problem_.sequences();
  if (fill_.Fill(order, {kInfinity, n}, nodes_max) < problem_.num_layers()) {
    return;
  }
  judge_.Offer(fill_.route());
  if (objective_ == Objective::kConcurrency &&
      problem_.Need(0, problem_.num_layers()) > 0) {
    n = fill_.MostSequences(order, n, floors_.most_sequences());
  }
  if (!problem_.timed()) {
    fill_.Fill(order, {kInfinity, n}, nodes_max);
    judge_.Offer(fill_.route());
    return;
  }
  if (objective_ == Objective::kEnergy || objective_ == Objective::kLatency) {
    // A few of the nodes may do better than all.
    for (size_t count = 1; count < std::min<size_t>(order.size(), 64);
         count += 1 + count / 4) {
      judge_.Offer(fill_.LeastCycle(std::span(order).first(count), n, nodes_max,
                                    floors_.cycle_s()));
    }
  }
  judge_.Offer(fill_.LeastCycle(order, n, nodes_max, floors_.cycle_s()));
  if (objective_ == Objective::kLatency) {
    const size_t rows = std::min(
        order.size(),
        kLoopCellsMax / static_cast<size_t>(problem_.num_layers() + 1) + 1);
    judge_.Offer(fill_.LeastLoop(std::span(order).first(rows), {kInfinity, n}));
  }
}

std::vector<int64_t> OrderSearch::BestOrder() {
  std::vector<int64_t> order;
  std::vector<bool> used(static_cast<size_t>(problem_.model().num_nodes()));
  for (const RouteEntry& entry : judge_.best()->route) {
    if (!used[static_cast<size_t>(entry.node)]) {
      order.push_back(entry.node);
    }
    used[static_cast<size_t>(entry.node)] = true;
  }
  const size_t size = kOrderMax + 2 * order.size();
  for (const int64_t node : rest_) {
    if (order.size() < size && !used[static_cast<size_t>(node)]) {
      order.push_back(node);
    }
  }
  return order;
}

void OrderSearch::Mutate(std::vector<int64_t>& order, size_t used) {
  const auto size = static_cast<int64_t>(order.size());
  const int64_t front = std::min(size, static_cast<int64_t>(used) + 1);
  const int64_t a = Random(front);
  // Half of the time a node that has not been looked at.
  int64_t b = Random(2) == 0 ? Random(front) : Random(size);
  for (int tries = 0;
       tries < 4 && problem_.kind_of(order[static_cast<size_t>(a)]) ==
                        problem_.kind_of(order[static_cast<size_t>(b)]);
       ++tries) {
    b = Random(size);
  }
  const auto at = [&](int64_t i) { return order.begin() + i; };
  if (Random(3) == 0 && b < front) {
    if (a < b) {
      std::rotate(at(a), at(a) + 1, at(b) + 1);
    } else {
      std::rotate(at(b), at(a), at(a) + 1);
    }
  } else {
    std::swap(*at(a), *at(b));
  }
}

bool OrderSearch::Reach(std::vector<int64_t>& order, const Limits& limits,
                        int64_t nodes_max) {
  int64_t reach = fill_.Fill(order, limits, nodes_max);
  size_t looked_at = fill_.looked_at();
  while (reach < problem_.num_layers()) {
    if (Spent() || order.size() < 2) {
      return false;
    }
    std::vector<int64_t> changed = order;
    Mutate(changed, looked_at);
    const int64_t own = fill_.Fill(changed, limits, nodes_max);
    if (own >= reach) {
      reach = own;
      looked_at = fill_.looked_at();
      order.swap(changed);
    }
  }
  return true;
}

void OrderSearch::LessCycle(int64_t sequences, int64_t nodes_max) {
  std::vector<int64_t> order = BestOrder();
  double cycle = fill_.CycleOf(judge_.best()->route);
  while (cycle > floors_.cycle_s() * (1 + kGain) &&
         Reach(order, {cycle * (1 - kGain), sequences}, nodes_max)) {
    const std::optional<Route> route =
        fill_.LeastCycle(order, sequences, nodes_max, floors_.cycle_s());
    judge_.Offer(route);
    cycle = fill_.CycleOf(*route);
  }
}

void OrderSearch::FewerNodes(const Limits& limits) {
  std::vector<int64_t> order = BestOrder();
  int64_t used = judge_.best()->measures.nodes_used;
  const int64_t floor = floors_.NodesFor(limits.sequences).value_or(1);
  while (used > floor && Reach(order, limits, used - 1)) {
    judge_.Offer(fill_.route());
    used = static_cast<int64_t>(fill_.route().size());
  }
}

void OrderSearch::MoreSequences() {
  std::vector<int64_t> order = BestOrder();
  const int64_t most = floors_.most_sequences();
  while (judge_.best()->measures.sequences.has_value()) {
    const int64_t n = *judge_.best()->measures.sequences;
    if (n >= most || !Reach(order, {kInfinity, n + 1}, problem_.nodes_max())) {
      return;
    }
    const int64_t more = fill_.MostSequences(order, n + 1, most);
    fill_.Fill(order, {kInfinity, more}, problem_.nodes_max());
    judge_.Offer(fill_.route());
    if (judge_.best()->measures.sequences.value_or(more) <= n) {
      return;
    }
  }
}

void OrderSearch::LessLoop(const Limits& limits) {
  std::vector<int64_t> order = BestOrder();
  const auto layers = static_cast<size_t>(problem_.num_layers()) + 1;
  const size_t front = std::min({order.size(), kLoopCellsMax / layers + 1,
                                 judge_.best()->route.size() + 16});
  while (!Spent()) {
    std::vector<int64_t> changed = order;
    Mutate(changed, front - 1);
    const auto route = fill_.LeastLoop(std::span(changed).first(front), limits);
    if (route.has_value() && judge_.Offer(route)) {
      order.swap(changed);
    }
  }
}

void OrderSearch::LessEnergy() {
  std::vector<int64_t> order = BestOrder();
  size_t used = judge_.best()->route.size();
  while (!Spent()) {
    std::vector<int64_t> changed = order;
    Mutate(changed, used);
    const size_t size = std::min(
        changed.size(),
        std::max<size_t>(1, used + static_cast<size_t>(Random(3)) - 1));
    const auto route =
        fill_.LeastCycle(std::span(changed).first(size), problem_.sequences(),
                         problem_.nodes_max(), floors_.cycle_s());
    if (judge_.Offer(route)) {
      order.swap(changed);
      used = judge_.best()->route.size();
    }
  }
}

void OrderSearch::Climb(int64_t steps_max) {
  if (!judge_.best().has_value()) {
    // Perhaps another order fits.
    std::vector<int64_t> order = rest_;
    steps_end_ = fill_.steps() + steps_max / 2;
    if (!Reach(order, {kInfinity, problem_.sequences()},
               problem_.nodes_max())) {
      return;
    }
    judge_.Offer(fill_.route());
    OfferOrder(order);
  }
  if (!judge_.best().has_value()) {
    return;
  }
  const int64_t n = problem_.sequences();
  const int64_t begun = fill_.steps();
  const auto share = [&](int64_t part) {
    steps_end_ = begun + steps_max / 10 * part;
  };
  share(5);
  switch (objective_) {
    case Objective::kThroughput: {
      LessCycle(n, problem_.nodes_max());
      const Limits limits = {
          fill_.CycleOf(judge_.best()->route) * (1 + kEqualTimes), n};
      share(8);
      FewerNodes(limits);
      share(10);
      LessLoop(limits);
      return;
    }
    case Objective::kConcurrency:
      MoreSequences();
      share(10);
      if (problem_.timed()) {
        LessCycle(judge_.best()->measures.sequences.value_or(n),
                  problem_.nodes_max());
      }
      return;
    case Objective::kNodes:
      FewerNodes({kInfinity, n});
      share(10);
      if (problem_.timed()) {
        LessCycle(n, judge_.best()->measures.nodes_used);
      }
      return;
    case Objective::kLatency:
      share(10);
      LessLoop({kInfinity, n});
      return;
    case Objective::kEnergy:
      share(10);
      LessEnergy();
      return;
  }
}

}  // namespace millrace::planner::placement
