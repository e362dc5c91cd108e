#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "planner/plan_reader.h"
#include "planner/replan/held_layers.h"

namespace millrace::planner::replan {

// A plan after nodes were lost, two ways.
struct Replanned {
  Cluster cluster;  // the survivors; nodes below are indices into it
  PlanOptions options;
  // The plan that moves the fewest bytes. Where no route was found it does not
  // fit, and has the verdict and the advice of planning anew.
  Plan plan;
  Moved moved;
  int64_t bound_bytes = 0;  // no plan that fits moves less
  bool exact = false;  // fewest bytes, and best by the objective among those
  // The best plan by the objective, whatever it moves; it fits where `plan`
  // does.
  Plan best;
  Moved best_moved;
};

// `file.plan` fits; `lost`: indices of its cluster's nodes, not all of them.
// InputError as MakePlan. Pure.
absl::StatusOr<Replanned> PlanWithoutNodes(const PlanFile& file,
                                           std::span<const int64_t> lost);

// A plan for another load on the same nodes.
struct PlanForLoad {
  Plan plan;  // the present route where no better one was found
  Moved moved;
  // The present route under the new load; where that does not fit only its
  // concurrency is filled in.
  Plan keep;
};

// `file.plan` fits; `options`: those of the new load. InputError as MakePlan.
absl::StatusOr<PlanForLoad> PlanAnewFor(const PlanFile& file,
                                        const PlanOptions& options);

}  // namespace millrace::planner::replan
