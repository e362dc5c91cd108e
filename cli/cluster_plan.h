#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compute_options.h"
#include "cli/pipeline_config.h"
#include "coordinator/membership/membership_core.h"
#include "model/spec/model_spec.h"
#include "proto/control_messages.h"

namespace millrace::cli {

// Where a plan file puts layers: worker and first layer, in route order.
struct PlannedSeat {
  std::string worker;
  int64_t first_layer = 0;
};

// What a plan file says of the route.
struct PlannedRoute {
  std::vector<PlannedSeat> seats;  // empty: there is no plan
  // That fill the pipeline, by the speeds the plan was made from; nothing where
  // it knows none.
  std::optional<int64_t> microbatches;
};

// How workers share a model.
struct ClusterLayout {
  std::vector<std::string> workers;  // in the order of the route
  PipelineConfig pipeline;
  int64_t sequences = 1;
};

// Cuts the model over all these workers, in the order given, so that the
// slowest is as fast as it can be and each holds its part within its memory.
// `planned`: takes this route instead. AnswerIsNo when it does not fit.
absl::StatusOr<ClusterLayout> LayOut(
    const model::ModelSpec& spec, const ComputeOptions& options,
    const std::vector<control::Register>& workers, const PlannedRoute& planned);

// The layout as the membership wants it.
coordinator::ClusterPlan ToClusterPlan(const model::ModelSpec& spec,
                                       const ClusterLayout& layout,
                                       bool threads_given);

// Reads the route of a plan file made by `plan --out`; the model's digest must
// be the same.
absl::StatusOr<PlannedRoute> ReadPlanFile(const std::string& path,
                                          const model::ModelSpec& spec);

}  // namespace millrace::cli
