#pragma once

#include "absl/status/statusor.h"
#include "coordinator/simulation/simulated_pipeline.h"
#include "planner/cluster.h"
#include "planner/costs.h"
#include "planner/plan.h"

namespace millrace::coordinator {

// The pipeline that a plan describes: times by the plan's own definitions,
// micro-batches as many as fill it, pools as a server makes them: for the
// sequences that the plan was made for (where it names none, for as many as
// fit) of its first context, in whole blocks; a sequence slot for each of them,
// four where none keeps a state. Valid. InputError where the cluster lacks a
// rate that a time needs, AnswerIsNo for a plan that does not fit.
absl::StatusOr<SimulatedPipeline> PipelineOfPlan(
    const planner::ModelCosts& costs, const planner::Cluster& cluster,
    const planner::PlanOptions& options, const planner::Plan& plan);

}  // namespace millrace::coordinator
