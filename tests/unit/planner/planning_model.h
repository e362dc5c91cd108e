#pragma once

#include <cstdint>
#include <vector>

#include "model/spec/model_spec.h"
#include "planner/plan.h"

namespace millrace::testing {

// A model spec without a checkpoint: one attention and one feed-forward
// operation per layer, as wide as `widths` says, in bf16.
model::ModelSpec PlanningModel(const std::vector<int64_t>& widths);

// Options that leave a stage little beside its weights.
planner::PlanOptions SmallOptions(int64_t context);

}  // namespace millrace::testing
