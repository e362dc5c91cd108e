#include "planner/replan/same_kind.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace millrace::planner::replan {

placement::Route WithHoldersFirst(const placement::Problem& problem,
                                  const HeldLayers& held,
                                  const placement::Route& route) {
  // Bytes that a node would keep in the place of one of the route.
  std::map<std::pair<int64_t, int64_t>, int64_t> overlaps;
  std::set<int64_t> places;
  for (const RouteEntry& entry : route) {
    places.insert(entry.node);
    for (int64_t i = entry.first_layer; i <= entry.last_layer; ++i) {
      const int64_t holder = held.holder(i);
      if (holder != kNobody &&
          problem.kind_of(holder) == problem.kind_of(entry.node)) {
        overlaps[{entry.node, holder}] +=
            static_cast<int64_t>(problem.Weights(i, i + 1));
      }
    }
  }
  std::vector<std::tuple<int64_t, int64_t, int64_t>> sorted;
  for (const auto& [pair, bytes] : overlaps) {
    sorted.emplace_back(-bytes, pair.first, pair.second);
  }
  std::sort(sorted.begin(), sorted.end());
  std::map<int64_t, int64_t> taken_by;  // place: node
  std::set<int64_t> taken;
  for (const auto& [bytes, place, node] : sorted) {
    if (!taken_by.contains(place) && taken.insert(node).second) {
      taken_by[place] = node;
    }
  }
  for (const int64_t place : places) {
    if (!taken_by.contains(place) && taken.insert(place).second) {
      taken_by[place] = place;
    }
  }
  std::map<size_t, size_t> next;  // by kind: the first node not looked at
  for (const int64_t place : places) {
    const size_t kind = problem.kind_of(place);
    while (!taken_by.contains(place)) {
      const int64_t node = problem.kind(kind).nodes[next[kind]++];
      if (taken.insert(node).second) {
        taken_by[place] = node;
      }
    }
  }
  placement::Route out = route;
  for (RouteEntry& entry : out) {
    entry.node = taken_by[entry.node];
  }
  return out;
}

}  // namespace millrace::planner::replan
