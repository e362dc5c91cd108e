#include "planner/replan/route_choice.h"

#include <set>
#include <utility>

#include "planner/plan_numbers.h"

namespace millrace::planner::replan {

std::optional<RouteChoice::Choice> RouteChoice::Measure(
    const placement::Route& route) {
  Choice choice;
  choice.route = MergeRoute(route);
  if (contiguous_) {
    std::set<int64_t> nodes;
    for (const RouteEntry& entry : choice.route) {
      if (!nodes.insert(entry.node).second) {
        return std::nullopt;
      }
    }
  }
  const std::optional<Measures> measures = judge_.Measure(choice.route);
  if (!measures.has_value()) {
    return std::nullopt;
  }
  choice.measures = *measures;
  choice.bytes = held_.BytesOf(choice.route);
  return choice;
}

int RouteChoice::Compare(const Choice& a, const Choice& b) const {
  if (a.bytes != b.bytes) {
    return a.bytes < b.bytes ? -1 : 1;
  }
  const int by_objective = judge_.Compare(a.measures, b.measures);
  if (by_objective != 0 || a.route.size() == b.route.size()) {
    return by_objective;
  }
  return a.route.size() < b.route.size() ? -1 : 1;
}

bool RouteChoice::Offer(const placement::Route& route) {
  std::optional<Choice> choice = Measure(route);
  if (!choice.has_value() ||
      (best_.has_value() && Compare(*choice, *best_) >= 0)) {
    return false;
  }
  best_ = std::move(choice);
  return true;
}

}  // namespace millrace::planner::replan
