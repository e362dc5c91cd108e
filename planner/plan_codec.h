#pragma once

#include <string>

#include "base/json.h"
#include "planner/cluster.h"
#include "planner/costs.h"
#include "planner/plan.h"

namespace millrace::planner {

// The plan as the JSON of `plan --json` and of plan files: keys and meanings in
// the user guide. Numbers that are unknown are null.
Json PlanToJson(const Plan& plan, const ModelCosts& costs,
                const Cluster& cluster, const PlanOptions& options);

}  // namespace millrace::planner
