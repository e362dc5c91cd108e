#include "planner/placement/kind_reach.h"

#include <algorithm>
#include <limits>

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Cycles closer than this are one: sums in another order differ by less.
constexpr double kCycleTolerance = 1e-12;
constexpr int64_t kSequencesMost = int64_t{1} << 62;

}  // namespace

std::vector<int32_t> FarthestEnds(const Problem& problem, size_t kind_index,
                                  const Problem::RowCosts& costs,
                                  const Limits& limits) {
  const NodeKind& kind = problem.kind(kind_index);
  const int64_t layers = problem.num_layers();
  std::vector<int32_t> ends(static_cast<size_t>(layers) + 1,
                            static_cast<int32_t>(layers));
  int64_t end = 0;
  for (int64_t begin = 0; begin < layers; ++begin) {
    end = std::max(end, begin);
    const int64_t end_max = problem.ForbiddenFrom(kind_index, begin);
    while (end < end_max &&
           problem.RunBytes(begin, end + 1, limits.sequences) <= kind.room &&
           problem.Seconds(kind, costs, begin, end + 1) <= limits.cycle_s) {
      ++end;
    }
    ends[static_cast<size_t>(begin)] = static_cast<int32_t>(end);
  }
  return ends;
}

KindReach::KindReach(const Problem& problem, const KindStates& states,
                     int64_t rows)
    : problem_(problem),
      states_(states),
      costs_(problem.At(rows)),
      ends_(problem.kinds().size()),
      reach_(states.size(), 0) {}

void KindReach::Fill(const Limits& limits) {
  const auto layers = static_cast<int32_t>(problem_.num_layers());
  // The farthest place up to each layer where a hop is quick enough.
  std::vector<int32_t> cut(static_cast<size_t>(layers) + 1, 0);
  for (int32_t layer = 1; layer <= layers; ++layer) {
    const auto at = static_cast<size_t>(layer);
    const bool ok =
        layer == layers ||
        costs_.hop_bytes[at] * problem_.default_link().byte_s <= limits.cycle_s;
    cut[at] = ok ? layer : cut[at - 1];
  }
  for (size_t kind = 0; kind < ends_.size(); ++kind) {
    ends_[kind] = FarthestEnds(problem_, kind, costs_, limits);
    for (int32_t& end : ends_[kind]) {
      end = cut[static_cast<size_t>(end)];
    }
  }
  for (size_t state = 1; state < states_.size(); ++state) {
    int32_t farthest = 0;
    for (size_t kind = 0; kind < ends_.size(); ++kind) {
      if (const int64_t from = states_.Without(state, kind); from >= 0) {
        const int32_t begin = reach_[static_cast<size_t>(from)];
        farthest = std::max(
            {farthest, begin, ends_[kind][static_cast<size_t>(begin)]});
      }
    }
    reach_[state] = farthest;
  }
}

std::optional<int64_t> KindReach::FewestNodes(int64_t nodes_max) const {
  std::optional<int64_t> fewest;
  for (size_t state = 0; state < states_.size(); ++state) {
    const int64_t count = states_.count(state);
    if (reach_[state] == problem_.num_layers() &&
        count <= fewest.value_or(nodes_max + 1) - 1) {
      fewest = count;
    }
  }
  return fewest;
}

Route KindReach::RouteOf(int64_t nodes) const {
  size_t state = 0;
  while (states_.count(state) != nodes ||
         reach_[state] != problem_.num_layers()) {
    ++state;
  }
  Route route;
  std::vector<size_t> used(ends_.size(), 0);
  while (reach_[state] > 0) {
    for (size_t kind = 0; kind < ends_.size(); ++kind) {
      const int64_t from = states_.Without(state, kind);
      if (from < 0) {
        continue;
      }
      const int32_t begin = reach_[static_cast<size_t>(from)];
      const int32_t end =
          std::max(begin, ends_[kind][static_cast<size_t>(begin)]);
      if (end == reach_[state]) {
        if (begin < end) {
          route.push_back(
              {problem_.kind(kind).nodes[used[kind]++], begin, end - 1});
        }
        state = static_cast<size_t>(from);
        break;
      }
    }
  }
  std::reverse(route.begin(), route.end());
  return route;
}

std::optional<Route> KindReach::LeastCycle(int64_t sequences, int64_t nodes_max,
                                           double at_least_s) {
  Route best;
  const auto reach = [&](double cycle) {
    Fill({cycle, sequences});
    const std::optional<int64_t> fewest = FewestNodes(nodes_max);
    if (fewest.has_value()) {
      best = RouteOf(*fewest);
    }
    return fewest.has_value();
  };
  if (!reach(kInfinity)) {
    return std::nullopt;
  }
  double low = at_least_s;
  double high = CycleOf(best);
  if (high > low && reach(low * (1 + kCycleTolerance))) {
    return best;
  }
  while (high > low * (1 + kCycleTolerance) && high > 0) {
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

int64_t KindReach::MostSequences(int64_t low, int64_t high) {
  // Bounds are close most of the time: steps that double, down from `high`.
  int64_t step = 1;
  while (low < high) {
    const int64_t tried = std::max(low + (high - low + 1) / 2, high - step);
    Fill({kInfinity, tried});
    if (FewestNodes(problem_.nodes_max()).has_value()) {
      low = tried;
    } else {
      high = tried - 1;
      step = std::min(step, kSequencesMost) * 2;
    }
  }
  return low;
}

}  // namespace millrace::planner::placement
