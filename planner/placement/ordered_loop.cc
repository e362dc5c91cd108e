#include <algorithm>
#include <limits>

#include "planner/placement/ordered_fill.h"

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The least of what has been pushed, those that are out of date taken out.
struct Start {
  int64_t begin = 0;
  double cost = 0;
};

}  // namespace

std::optional<Route> OrderedFill::LeastLoop(std::span<const int64_t> order,
                                            const Limits& limits) {
  const int64_t layers = problem_.num_layers();
  const auto width = static_cast<size_t>(layers) + 1;
  const Problem::LinkTimes& link = problem_.default_link();
  // Least loop of the layers before each cut, and where its last run begins
  // when that is the node of this row (-1: it is an earlier one).
  std::vector<double> least(width, kInfinity);
  std::vector<double> next;
  std::vector<int32_t> from(order.size() * width, -1);
  std::vector<Start> window;
  least[0] = 0;
  for (size_t row = 0; row < order.size(); ++row) {
    const size_t index = problem_.kind_of(order[row]);
    const NodeKind& kind = problem_.kind(index);
    steps_ += layers;
    next = least;
    window.clear();
    size_t front = 0;
    for (int64_t end = 1; end <= layers; ++end) {
      const int64_t begin = end - 1;
      const double hop = begin == 0 ? 0 : HopSeconds(begin, link.byte_s);
      if (least[static_cast<size_t>(begin)] < kInfinity &&
          hop <= limits.cycle_s) {
        const double cost = least[static_cast<size_t>(begin)] + hop +
                            (begin == 0 ? 0 : link.latency_s) -
                            problem_.Seconds(kind, costs_, 0, begin);
        while (window.size() > front && window.back().cost >= cost) {
          window.pop_back();
        }
        window.push_back({begin, cost});
      }
      const auto out_of_reach = [&](int64_t start) {
        return problem_.ForbiddenFrom(index, start) < end ||
               problem_.RunBytes(start, end, limits.sequences) > kind.room ||
               problem_.Seconds(kind, costs_, start, end) > limits.cycle_s;
      };
      while (window.size() > front && out_of_reach(window[front].begin)) {
        ++front;
      }
      if (window.size() == front) {
        continue;
      }
      const double loop =
          window[front].cost + problem_.Seconds(kind, costs_, 0, end);
      const auto at = static_cast<size_t>(end);
      if (loop < next[at]) {
        next[at] = loop;
        from[row * width + at] = static_cast<int32_t>(window[front].begin);
      }
    }
    least.swap(next);
  }
  if (least.back() == kInfinity) {
    return std::nullopt;
  }
  Route route;
  int64_t end = layers;
  for (size_t row = order.size(); row-- > 0 && end > 0;) {
    const int32_t begin = from[row * width + static_cast<size_t>(end)];
    if (begin >= 0) {
      route.push_back({order[row], begin, end - 1});
      end = begin;
    }
  }
  std::reverse(route.begin(), route.end());
  return route;
}

}  // namespace millrace::planner::placement
