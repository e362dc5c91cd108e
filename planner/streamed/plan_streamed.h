#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan.h"
#include "planner/planner.h"

namespace millrace::planner::streamed {

// A plan of `--placement streamed` without verdict and advice. UsageError for a
// model without experts and for the objective `concurrency`; InputError where
// no node has an NVMe bandwidth, or a rate is missing.
absl::StatusOr<Plan> PlanStreamedOnce(const PlanInput& input);

// Fills verdict and notes of such a plan.
void DescribeStreamed(const PlanInput& input, Plan& plan);

}  // namespace millrace::planner::streamed
