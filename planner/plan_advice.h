#pragma once

#include <vector>

#include "planner/plan.h"
#include "planner/planner.h"

namespace millrace::planner {

// What would help `plan`, which was made from `input`: other hardware, a
// shorter context, fewer sequences, other storage of KV. Each entry is found by
// planning anew with that change; those without effect are left out. The
// largest effect first. Nothing for inputs so large that planning several times
// would take long, nor for a change that needs a field which is missing.
std::vector<Advice> AdviceFor(const PlanInput& input, const Plan& plan);

}  // namespace millrace::planner
