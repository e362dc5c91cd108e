#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner::placement {

// What a placement is sought for. The context of its sequences and the scratch
// of nodes are those of the cost model.
struct PlacementOptions {
  Objective objective = Objective::kThroughput;
  PlacementKind placement = PlacementKind::kAuto;
  // Sequences that must fit, which fix the rows of a micro-batch; nothing: one
  // sequence, one row. >= 1.
  std::optional<int64_t> concurrency;
  // Where times are unknown and the objective needs them: compare routes as if
  // all nodes were equally fast and links took no time. Else that is an error.
  bool unknown_speeds_are_equal = false;
};

struct Placement {
  std::vector<RouteEntry> route;  // neighboring entries on different nodes
  PlacementKind kind = PlacementKind::kContiguous;  // never kAuto
  Bounds bounds;       // hold for every plan that `placement` asks for
  bool exact = false;  // proven best by every criterion of the objective
};

// The best route found, by all criteria of the objective: README.md says where
// it is proven best and how long it takes. Nothing where no route was found
// that fits. InputError where the objective needs a field that is missing. Pure
// and deterministic; no threads.
absl::StatusOr<std::optional<Placement>> Place(const CostModel& model,
                                               const PlacementOptions& options);

}  // namespace millrace::planner::placement
