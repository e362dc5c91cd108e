#pragma once

#include <cstdint>
#include <vector>

#include "model/spec/model_spec.h"
#include "model/spec/stage_memory.h"
#include "planner/cluster.h"
#include "planner/plan.h"

namespace millrace::testing {

// A model spec without a checkpoint: one attention and one feed-forward
// operation per layer, as wide as `widths` says, in bf16.
model::ModelSpec PlanningModel(const std::vector<int64_t>& widths);

// Of a stage that leaves little beside its weights, for `context` positions.
model::StageShape SmallShape(int64_t context);
inline constexpr int64_t kSmallProcessBytes = 1000;

// Throughput for sequences of `context` positions.
planner::PlanOptions OptionsFor(int64_t context);

// The plan of such stages; of unknown speeds: as if all were equal.
planner::Plan PlanOf(const model::ModelSpec& spec,
                     const planner::Cluster& cluster,
                     const planner::PlanOptions& options,
                     model::KvFormat kv = model::kKv16Bit);

}  // namespace millrace::testing
