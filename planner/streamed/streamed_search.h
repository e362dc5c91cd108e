#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "planner/plan.h"
#include "planner/streamed/reach.h"

namespace millrace::planner::streamed {

struct StreamedRoute {
  Route route;
  Bounds bounds;  // nothing where the route is not proven best
};

// The best route found, by all criteria of the objective, of one run a node:
// README.md says where it is proven best by the first one. Nothing where no
// route was found that has room for the floor. Rates of all nodes and links are
// known; InputError where the objective needs another field. `concurrency`: as
// in PlanOptions. Pure and deterministic.
absl::StatusOr<std::optional<StreamedRoute>> SearchStreamed(
    const StreamedNodes& nodes, Objective objective,
    std::optional<int64_t> concurrency);

}  // namespace millrace::planner::streamed
