#include "planner/placement/ordered_fill.h"

#include <algorithm>
#include <limits>

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kCycleTolerance = 1e-12;

}  // namespace

OrderedFill::OrderedFill(const Problem& problem, int64_t rows)
    : problem_(problem), rows_(rows), costs_(problem.At(rows)) {}

double OrderedFill::HopSeconds(int64_t cut, double byte_s) const {
  return costs_.hop_bytes[static_cast<size_t>(cut)] * byte_s;
}

int64_t OrderedFill::FarthestEnd(const NodeKind& kind, size_t kind_index,
                                 int64_t begin, const Limits& limits) const {
  const auto holds = [&](int64_t end) {
    return problem_.RunBytes(begin, end, limits.sequences) <= kind.room &&
           problem_.Seconds(kind, costs_, begin, end) <= limits.cycle_s;
  };
  const int64_t end_max = problem_.ForbiddenFrom(kind_index, begin);
  // Doubling steps, then bisection: `low` fits, `high` does not.
  int64_t low = begin;
  int64_t high = begin;
  int64_t step = 1;
  while (low < end_max) {
    high = std::min(end_max, low + step);
    if (!holds(high)) {
      break;
    }
    low = high;
    step *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

// Moves the end of the route back to where the hop to this node is quick
// enough; returns it, or -1 where there is no such place.
int64_t OrderedFill::CutFor(int64_t node, double cycle_s) {
  if (route_.empty()) {
    return 0;
  }
  const RouteEntry& last = route_.back();
  const double byte_s = problem_.LinkBetween(last.node, node).byte_s;
  for (int64_t cut = last.last_layer + 1; cut > last.first_layer; --cut) {
    if (HopSeconds(cut, byte_s) <= cycle_s) {
      return cut;
    }
  }
  return -1;
}

int64_t OrderedFill::Fill(std::span<const int64_t> order, const Limits& limits,
                          int64_t nodes_max) {
  route_.clear();
  looked_at_ = 0;
  int64_t reach = 0;
  for (const int64_t node : order) {
    if (reach == problem_.num_layers() ||
        static_cast<int64_t>(route_.size()) >= nodes_max) {
      break;
    }
    ++looked_at_;
    ++steps_;
    const int64_t begin = CutFor(node, limits.cycle_s);
    if (begin < 0) {
      continue;
    }
    const size_t kind = problem_.kind_of(node);
    const int64_t end = FarthestEnd(problem_.kind(kind), kind, begin, limits);
    if (end <= reach) {
      continue;
    }
    if (!route_.empty()) {
      route_.back().last_layer = begin - 1;
    }
    route_.push_back({node, begin, end - 1});
    reach = end;
  }
  return reach;
}

std::optional<Route> OrderedFill::LeastCycle(std::span<const int64_t> order,
                                             int64_t sequences,
                                             int64_t nodes_max,
                                             double at_least_s) {
  Route best;
  const auto reach = [&](double cycle) {
    if (Fill(order, {cycle, sequences}, nodes_max) < problem_.num_layers()) {
      return false;
    }
    best = route_;
    return true;
  };
  if (!reach(kInfinity)) {
    return std::nullopt;
  }
  double low = at_least_s;
  double high = CycleOf(best);
  if (high > low && reach(low * (1 + kCycleTolerance))) {
    return best;
  }
  while (high > low * (1 + kCycleTolerance)) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) {
      break;
    }
    if (reach(middle)) {
      high = CycleOf(best);
    } else {
      low = middle;
    }
  }
  return best;
}

int64_t OrderedFill::MostSequences(std::span<const int64_t> order, int64_t low,
                                   int64_t high) {
  // `low` fits; what lies above `high` cannot.
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (Fill(order, {kInfinity, middle}, problem_.nodes_max()) ==
        problem_.num_layers()) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace millrace::planner::placement
