#pragma once

#include "planner/placement.h"
#include "planner/plan.h"

namespace millrace::planner {

// Everything that follows from plan.route: stages, times, concurrency, what
// binds. Definitions: README.md.
void FillNumbers(const StageModel& stages, const PlanOptions& options,
                 Plan& plan);

}  // namespace millrace::planner
