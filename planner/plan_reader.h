#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/cluster.h"
#include "planner/costs.h"
#include "planner/plan.h"

namespace millrace::planner {

// A plan file read back: all that simulation, checks and planning anew need.
struct PlanFile {
  ModelCosts costs;
  Cluster cluster;
  PlanOptions options;
  // Every number is worked out again from the route, the costs and the cluster,
  // not believed. `bounds` and `advice` are empty. Those of a streamed plan
  // follow from streamed::CostsOfPlan().
  Plan plan;
  // Of the plan's stages as the file says; of other runs, which nobody knows,
  // the largest of those.
  ScratchFunction scratch;
};

// Reads what `plan --out` wrote. A route that leaves layers out or names nodes
// that the cluster lacks, stages beyond their memory and everything that
// ParseCosts and ParseCluster refuse are InputErrors that name `object` and the
// field. A plan that does not fit is read, without a route.
absl::StatusOr<PlanFile> ParsePlan(absl::string_view text,
                                   absl::string_view object);

}  // namespace millrace::planner
