#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cluster.h"
#include "planner/costs.h"
#include "planner/plan.h"

namespace millrace::planner {

// A model to be placed on a cluster; all have passed their codecs and outlive
// the call. Pointers are not null.
struct PlanInput {
  const ModelCosts* costs = nullptr;
  const Cluster* cluster = nullptr;
  const PlanOptions* options = nullptr;
  ScratchFunction scratch = {};
  // Where times are unknown and the objective needs them: compare routes as if
  // all nodes were equally fast. Else that is an error.
  bool unknown_speeds_are_equal = false;
  // The same model held otherwise, for advice: "--kv int8".
  struct Alternative {
    std::string change;
    const ModelCosts* costs = nullptr;
  };
  std::vector<Alternative> alternatives = {};
};

// Places the model and works every number of the plan out from its route. Pure.
// A model that does not fit is a Plan with fits == false and a verdict, not an
// error. InputError where the objective needs a field that is missing.
absl::StatusOr<Plan> MakePlan(const PlanInput& input);

}  // namespace millrace::planner
