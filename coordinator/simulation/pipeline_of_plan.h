#pragma once

#include "absl/status/statusor.h"
#include "coordinator/simulation/simulated_pipeline.h"
#include "planner/cluster.h"
#include "planner/costs.h"
#include "planner/plan.h"

namespace millrace::coordinator {

// What a plan's times leave out, and a simulation may count.
struct BeyondPlan {
  // Every pass reads the keys and values of its sequences, and reads and writes
  // their state, at the node's memory bandwidth.
  bool sequence_reads = false;
  double coordinator_s = 0;  // for each frame; >= 0
};

// The pipeline that a plan describes: times by the plan's own definitions,
// micro-batches as many as fill it, pools as a server makes them: for the
// sequences that the plan was made for (where it names none, for as many as
// fit) of its first context, in whole blocks; a sequence slot for each of them,
// four where none keeps a state. Valid. InputError where the cluster lacks a
// rate that a time needs, AnswerIsNo for a plan that does not fit.
absl::StatusOr<SimulatedPipeline> PipelineOfPlan(
    const planner::ModelCosts& costs, const planner::Cluster& cluster,
    const planner::PlanOptions& options, const planner::Plan& plan,
    const BeyondPlan& beyond = {});

}  // namespace millrace::coordinator
