#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/planned_model.h"
#include "model/spec/stage_memory.h"
#include "planner/cluster.h"
#include "planner/costs.h"
#include "planner/plan.h"
#include "planner/planner.h"

namespace millrace::cli {

// Of a cluster or cost file.
inline constexpr int64_t kPlanInputBytesMax = int64_t{64} << 20;

// What people give to `plan`, as they typed it; empty: not given.
struct PlanFlags {
  std::string model;
  std::string costs;
  std::string cluster;
  std::string contexts;
  std::string objective;
  std::string placement;
  std::string kv;
  std::optional<int64_t> prompt_len;
  std::optional<int64_t> output_len;
  std::optional<int64_t> chunk;
  std::optional<int64_t> concurrency;
};

// A model and what it is planned for.
struct ModelWorkload {
  std::unique_ptr<PlannedModel> model;
  planner::PlanOptions options;
  model::StageShape shape;  // of a stage with all layers
  // Of a worker, beside its stages.
  planner::ProcessBytes process;
};

// Of flags.model, on a cluster of at most so many nodes. UsageError for options
// that are out of range or longer than the model allows, InputError for a model
// that cannot be read.
absl::StatusOr<ModelWorkload> ReadModelWorkload(const PlanFlags& flags,
                                                int64_t num_nodes);

// What a plan is made from, read and checked.
struct PlanInputs {
  planner::ModelCosts costs;
  planner::Cluster cluster;
  planner::PlanOptions options;
  planner::ScratchFunction scratch;
  // Plans of a model are made where speeds are unknown too, unless people asked
  // for an objective that needs them.
  bool unknown_speeds_are_equal = false;
  // The model with keys and values as int8, for advice.
  std::optional<planner::ModelCosts> costs_of_int8;
  // What `scratch` borrows from; nothing for a cost file.
  std::unique_ptr<PlannedModel> model;
};

// UsageError for options that exclude each other or are out of range; of the
// lengths that a model allows nothing is known yet.
absl::Status CheckPlanFlags(const PlanFlags& flags);

// Reads the model or the cost file; flags.cluster is `cluster`. InputError for
// files that cannot be used.
absl::StatusOr<PlanInputs> ReadPlanInputs(const PlanFlags& flags,
                                          planner::Cluster cluster);

// As the planner takes them; borrows.
planner::PlanInput ToPlanInput(const PlanInputs& inputs);

}  // namespace millrace::cli
