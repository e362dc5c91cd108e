#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/placement/judge.h"
#include "planner/replan/held_layers.h"

namespace millrace::planner::replan {

struct FewestBytes {
  placement::Route route;
  int64_t bytes = 0;
  int64_t bound = 0;   // no route that fits moves less
  bool exact = false;  // no route that moves as little is better either
};

// The route that fits and moves the fewest bytes; of equal ones the best by the
// objective's criteria, then one of fewer segments. `contiguous`: one run a
// node. `known`: routes that may fit, to begin with. Nothing where none was
// found. README.md says where it is exact. Pure and deterministic.
std::optional<FewestBytes> FindFewestBytes(
    const placement::Problem& problem, const HeldLayers& held, bool contiguous,
    const std::vector<placement::Route>& known);

}  // namespace millrace::planner::replan
