#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "planner/plan.h"
#include "planner/planner.h"

namespace millrace::planner {

// A plan without verdict and advice: route, numbers, bounds.
absl::StatusOr<Plan> PlanOnce(const PlanInput& input);

}  // namespace millrace::planner
