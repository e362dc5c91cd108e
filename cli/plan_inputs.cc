#include "cli/plan_inputs.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/compute_options.h"
#include "cli/number_list.h"
#include "cli/pipeline_config.h"
#include "coordinator/core/core_config.h"
#include "planner/costs_codec.h"
#include "planner/plan_names.h"
#include "stage-worker/runtime/stage_shape.h"

namespace millrace::cli {
namespace {

constexpr int64_t kContextDefault = 4096;

absl::Status CheckFiles(const PlanFlags& flags) {
  if (!flags.model.empty() && !flags.costs.empty()) {
    return UsageError("--costs", "stands in place of a model",
                      "give MODEL or --costs, not both");
  }
  if (flags.model.empty() && flags.costs.empty()) {
    return UsageError("plan", "needs a model", "give its path, or --costs");
  }
  if (!flags.costs.empty() && !flags.kv.empty()) {
    return UsageError("--kv", "needs a model: a cost file says what KV takes",
                      "leave it out");
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view option,
                         const std::optional<int64_t>& value) {
  if (value.has_value() && (*value < 1 || *value > planner::kLengthMax)) {
    return UsageError(
        option, absl::StrCat(*value, " is out of range"),
        absl::StrCat("give a number from 1 to ", planner::kLengthMax));
  }
  return absl::OkStatus();
}

absl::Status ReadAims(const PlanFlags& flags, planner::PlanOptions& options) {
  if (!flags.objective.empty()) {
    const auto objective = planner::ObjectiveNamed(flags.objective);
    if (!objective.has_value()) {
      return UsageError(
          "--objective",
          absl::StrCat("'", Printable(flags.objective), "' is not known"),
          "give throughput, concurrency, latency, nodes or energy");
    }
    options.objective = *objective;
  }
  if (flags.placement == "streamed" && !flags.costs.empty()) {
    return UsageError("--placement",
                      "'streamed' needs a model: a cost file does not say what "
                      "could be read from a disk",
                      "give auto, contiguous or interleaved");
  }
  if (!flags.placement.empty()) {
    const auto placement = planner::PlacementNamed(flags.placement);
    if (!placement.has_value()) {
      return UsageError(
          "--placement",
          absl::StrCat("'", Printable(flags.placement), "' is not known"),
          "give auto, contiguous, interleaved or streamed");
    }
    options.placement = *placement;
  }
  return absl::OkStatus();
}

// The lengths to plan for, from 1 to `most`, which is the model's own.
absl::Status ReadContexts(const PlanFlags& flags, int64_t most,
                          std::vector<int64_t>& contexts) {
  MILLRACE_ASSIGN_OR_RETURN(
      contexts, ParseNumberList(flags.contexts, "--context", "length"));
  absl::string_view option = "--context";
  if (contexts.empty() && flags.prompt_len.has_value() &&
      flags.output_len.has_value()) {
    option = "--prompt-len and --output-len";
    contexts.push_back(*flags.prompt_len + *flags.output_len);
  } else if (contexts.empty()) {
    contexts.push_back(std::min(kContextDefault, most));
  }
  if (contexts.size() > planner::kContextsMax) {
    return UsageError(option,
                      absl::StrCat("names ", contexts.size(), " lengths"),
                      absl::StrCat("give at most ", planner::kContextsMax));
  }
  for (const int64_t context : contexts) {
    if (context < 1 || context > planner::kLengthMax) {
      return UsageError(option, absl::StrCat(context, " is out of range"),
                        absl::StrCat("give numbers from 1 to ",
                                     std::min(most, planner::kLengthMax)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<planner::PlanOptions> ReadOptions(const PlanFlags& flags,
                                                 int64_t context_most) {
  MILLRACE_RETURN_IF_ERROR(CheckLength("--prompt-len", flags.prompt_len));
  MILLRACE_RETURN_IF_ERROR(CheckLength("--output-len", flags.output_len));
  MILLRACE_RETURN_IF_ERROR(CheckLength("--chunk", flags.chunk));
  MILLRACE_RETURN_IF_ERROR(CheckLength("--concurrency", flags.concurrency));
  planner::PlanOptions options;
  MILLRACE_RETURN_IF_ERROR(ReadAims(flags, options));
  MILLRACE_RETURN_IF_ERROR(ReadContexts(flags, context_most, options.contexts));
  options.concurrency = flags.concurrency;
  options.prompt_len = flags.prompt_len;
  options.output_len = flags.output_len;
  options.chunk = flags.chunk;
  return options;
}

}  // namespace

absl::StatusOr<ModelWorkload> ReadModelWorkload(const PlanFlags& flags,
                                                int64_t num_nodes) {
  if (flags.model.empty()) {
    return UsageError("plan", "needs a model", "give its path");
  }
  ModelWorkload workload;
  MILLRACE_ASSIGN_OR_RETURN(PlannedModel model, OpenPlannedModel(flags.model));
  workload.model = std::make_unique<PlannedModel>(std::move(model));
  const model::ModelSpec& spec = workload.model->spec;
  MILLRACE_ASSIGN_OR_RETURN(workload.options,
                            ReadOptions(flags, spec.context_length));
  for (const int64_t context : workload.options.contexts) {
    MILLRACE_RETURN_IF_ERROR(CheckContext(
        flags.contexts.empty() ? "--prompt-len and --output-len" : "--context",
        context, spec));
  }
  ComputeFlags compute_flags;
  compute_flags.kv = flags.kv;
  compute_flags.chunk = flags.chunk;
  compute_flags.context = workload.options.contexts[0];
  MILLRACE_ASSIGN_OR_RETURN(const ComputeOptions compute,
                            Validate(compute_flags, true));
  PipelineConfig pipeline =
      MakePipelineConfig(spec, compute, workload.options.sequences(), {0});
  workload.shape = worker::ShapeOf(pipeline.stages[0]);
  pipeline.microbatches = coordinator::DefaultMicrobatches(
      std::min(num_nodes, static_cast<int64_t>(spec.layers.size())), true);
  workload.process = {.program = kProgramBytes,
                      .stage_link = workload.model->VectorsMax() *
                                    LinkBufferBytes(pipeline, false),
                      .coordinator_link = LinkBufferBytes(pipeline, true)};
  return workload;
}

absl::Status CheckPlanFlags(const PlanFlags& flags) {
  MILLRACE_RETURN_IF_ERROR(CheckFiles(flags));
  return ReadOptions(flags, planner::kLengthMax).status();
}

absl::StatusOr<PlanInputs> ReadPlanInputs(const PlanFlags& flags,
                                          planner::Cluster cluster) {
  PlanInputs inputs;
  MILLRACE_ASSIGN_OR_RETURN(inputs.options,
                            ReadOptions(flags, planner::kLengthMax));
  inputs.cluster = std::move(cluster);
  if (!flags.costs.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string costs,
                              ReadFile(flags.costs, kPlanInputBytesMax));
    MILLRACE_ASSIGN_OR_RETURN(inputs.costs,
                              planner::ParseCosts(costs, flags.costs));
    return inputs;
  }
  MILLRACE_ASSIGN_OR_RETURN(
      ModelWorkload workload,
      ReadModelWorkload(flags,
                        static_cast<int64_t>(inputs.cluster.nodes.size())));
  inputs.options = std::move(workload.options);
  inputs.model = std::move(workload.model);
  inputs.costs = inputs.model->Costs(workload.shape);
  inputs.scratch = inputs.model->Scratch(workload.shape, workload.process);
  inputs.unknown_speeds_are_equal = flags.objective.empty();
  if (workload.shape.kv != model::kKvInt8) {
    workload.shape.kv = model::kKvInt8;
    inputs.costs_of_int8 = inputs.model->Costs(workload.shape);
  }
  return inputs;
}

planner::PlanInput ToPlanInput(const PlanInputs& inputs) {
  planner::PlanInput input;
  input.costs = &inputs.costs;
  input.cluster = &inputs.cluster;
  input.options = &inputs.options;
  input.scratch = inputs.scratch;
  input.unknown_speeds_are_equal = inputs.unknown_speeds_are_equal;
  if (inputs.costs_of_int8.has_value()) {
    input.alternatives.push_back({"--kv int8", &*inputs.costs_of_int8});
  }
  return input;
}

}  // namespace millrace::cli
