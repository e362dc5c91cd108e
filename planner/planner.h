#pragma once

#include "absl/status/statusor.h"
#include "model/spec/model_spec.h"
#include "planner/cluster.h"
#include "planner/plan.h"

namespace millrace::planner {

// Places a model on a cluster, contiguous, for the most tokens per second, and
// works every number of the plan out from its route. Pure. A model that does
// not fit is a Plan with fits == false and a verdict, not an error.
// A node that lacks the bandwidth or compute that times need leaves them out;
// speeds are then taken as equal.
Plan MakePlan(const model::ModelSpec& spec, const Cluster& cluster,
              const PlanOptions& options);

}  // namespace millrace::planner
