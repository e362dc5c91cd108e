#pragma once

#include <cstdint>
#include <optional>

#include "planner/placement/judge.h"
#include "planner/replan/held_layers.h"

namespace millrace::planner::replan {

// Keeps the best of the routes given to it: fewest bytes moved, then the
// objective's criteria, then fewest segments.
class RouteChoice {
 public:
  RouteChoice(const placement::Problem& problem, const HeldLayers& held,
              bool contiguous)
      : held_(held), contiguous_(contiguous), judge_(problem) {}

  struct Choice {
    placement::Route route;  // neighbors on one node merged
    int64_t bytes = 0;
    Measures measures;
  };

  // Nothing where the route does not fit or is of the wrong kind.
  std::optional<Choice> Measure(const placement::Route& route);
  // Below 0 where `a` is better.
  [[nodiscard]] int Compare(const Choice& a, const Choice& b) const;
  bool Offer(const placement::Route& route);
  [[nodiscard]] const std::optional<Choice>& best() const { return best_; }

 private:
  const HeldLayers& held_;
  const bool contiguous_;
  placement::Judge judge_;
  std::optional<Choice> best_;
};

}  // namespace millrace::planner::replan
