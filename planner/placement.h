#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner {

// The nodes of a contiguous placement, in the order of the route; each gets at
// least one layer.
struct Placement {
  std::vector<RouteEntry> route;
  bool exact = false;  // proven to have the least cycle time
};

// Least cycle time, then fewest nodes; nodes may be left out and come in any
// order. Exact while the multisets of node kinds are few (a rack of equal nodes
// always is), else by node order of speed with a bound on the gap. Nothing when
// the model does not fit.
std::optional<Placement> PlaceContiguous(const CostModel& model,
                                         int64_t sequences);

}  // namespace millrace::planner
