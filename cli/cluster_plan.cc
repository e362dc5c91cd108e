#include "cli/cluster_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "planner/layer_costs.h"
#include "planner/segment_cuts.h"
#include "transport/tcp/tcp_handshake.h"

namespace millrace::cli {
namespace {

constexpr int64_t kSequencesDefault = 16;
constexpr int64_t kPlanBytesMax = int64_t{256} << 20;
// The links of the coordinator have room for one more.
constexpr int64_t kMicrobatchesMax = transport::kTcpWindowMax - 1;

control::KvType ToControl(kernels::KvType type) {
  switch (type) {
    case kernels::KvType::kF32:
      return control::KvType::kF32;
    case kernels::KvType::kF16:
      return control::KvType::kF16;
    case kernels::KvType::kBf16:
      return control::KvType::kBf16;
    case kernels::KvType::kInt8:
      return control::KvType::kInt8;
  }
  return control::KvType::kF16;
}

control::Stage ToControl(const worker::StageConfig& config,
                         bool threads_given) {
  control::Stage stage;
  stage.first_layer = config.first_layer;
  stage.last_layer = config.last_layer;
  stage.holds_embedding = config.holds_embedding;
  stage.holds_head = config.holds_head;
  stage.compute = config.compute == kernels::ComputeMode::kExact
                      ? control::ComputeMode::kExact
                      : control::ComputeMode::kFast;
  stage.kv_type = ToControl(config.kv_type);
  stage.context = config.context;
  stage.sequences = config.sequences;
  stage.slots = config.slots;
  stage.rows_max = config.rows_max;
  stage.prefill_chunk = config.prefill_chunk;
  stage.num_threads = threads_given ? config.num_threads : 0;
  return stage;
}

// Whether every stage stays within its worker's memory; 0 means not limited.
bool FitsMemory(const model::ModelSpec& spec, const PipelineConfig& pipeline,
                const std::vector<control::Register>& workers) {
  for (size_t stage = 0; stage < workers.size(); ++stage) {
    if (workers[stage].memory_bytes > 0 &&
        ResidentBytes(spec, pipeline, stage, 1) > workers[stage].memory_bytes) {
      return false;
    }
  }
  return true;
}

// First layers over workers of unequal memory; nothing when they cannot hold
// the model with so many sequences.
std::optional<std::vector<int64_t>> CutByMemory(
    const model::ModelSpec& spec, const ComputeOptions& options,
    int64_t sequences, const std::vector<control::Register>& workers) {
  const planner::LayerCosts costs(spec);
  return planner::CutSegments(
      costs.num_layers(), static_cast<int64_t>(workers.size()),
      [&](int64_t stage, int64_t begin, int64_t end) -> std::optional<double> {
        const int64_t memory = workers[static_cast<size_t>(stage)].memory_bytes;
        if (memory > 0) {
          // The stage alone, in a pipeline of three at its place.
          std::vector<int64_t> first_layers;
          if (begin > 0) {
            first_layers.push_back(0);
          }
          first_layers.push_back(begin);
          if (end < costs.num_layers()) {
            first_layers.push_back(end);
          }
          const PipelineConfig pipeline =
              MakePipelineConfig(spec, options, sequences, first_layers);
          if (ResidentBytes(spec, pipeline, begin > 0 ? 1 : 0, 1) > memory) {
            return std::nullopt;
          }
        }
        return costs.NominalCost(begin, end);
      });
}

absl::Status DoesNotFit(const model::ModelSpec& spec,
                        const std::vector<control::Register>& workers,
                        int64_t sequences) {
  int64_t memory = 0;
  for (const control::Register& worker : workers) {
    memory += worker.memory_bytes;
  }
  const planner::LayerCosts costs(spec);
  return AnswerIsNo(
      "plan",
      absl::StrCat("the model with ",
                   HumanSize(costs.WeightsBytes(0, costs.num_layers())),
                   " of weights and ", Counted(sequences, "sequence"),
                   " does not fit ", Counted(std::ssize(workers), "worker"),
                   " of ", HumanSize(memory), " together"),
      "give more workers or memory, or lower --context or --concurrency");
}

absl::StatusOr<std::vector<int64_t>> FollowPlan(
    const std::vector<control::Register>& workers,
    const std::vector<PlannedSeat>& planned,
    std::vector<control::Register>& ordered) {
  std::vector<int64_t> first_layers;
  for (const PlannedSeat& seat : planned) {
    const auto found = std::find_if(
        workers.begin(), workers.end(),
        [&](const control::Register& w) { return w.name == seat.worker; });
    if (found == workers.end()) {
      return MakeError(absl::StatusCode::kUnavailable, seat.worker,
                       "is in the plan and has not registered");
    }
    ordered.push_back(*found);
    first_layers.push_back(seat.first_layer);
  }
  return first_layers;
}

}  // namespace

absl::StatusOr<ClusterLayout> LayOut(
    const model::ModelSpec& spec, const ComputeOptions& options,
    const std::vector<control::Register>& workers,
    const PlannedRoute& planned) {
  std::vector<control::Register> ordered;
  std::optional<std::vector<int64_t>> fixed;
  if (!planned.seats.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(fixed,
                              FollowPlan(workers, planned.seats, ordered));
  } else {
    ordered = workers;
    if (!options.cuts.empty()) {
      fixed = FirstLayers(spec, options);
    }
  }
  if (ordered.size() > spec.layers.size() ||
      (fixed.has_value() && fixed->size() != ordered.size())) {
    return AnswerIsNo(
        "plan",
        absl::StrCat("the cuts of ", Counted(std::ssize(spec.layers), "layer"),
                     " do not match ", Counted(std::ssize(ordered), "worker")),
        "start as many workers as there are stages");
  }
  const int64_t wanted =
      options.concurrency > 0 ? options.concurrency : kSequencesDefault;
  for (int64_t sequences = wanted; sequences >= 1; --sequences) {
    const std::optional<std::vector<int64_t>> first_layers =
        fixed.has_value() ? fixed
                          : CutByMemory(spec, options, sequences, ordered);
    if (first_layers.has_value()) {
      ClusterLayout layout;
      layout.sequences = sequences;
      layout.pipeline =
          MakePipelineConfig(spec, options, sequences, *first_layers);
      if (planned.microbatches.has_value()) {
        // More than there are sequences and stages have nothing to carry.
        const int64_t most =
            std::min(kMicrobatchesMax,
                     std::max(sequences, layout.pipeline.microbatches));
        layout.pipeline.microbatches =
            std::clamp<int64_t>(*planned.microbatches, 1, most);
      }
      if (FitsMemory(spec, layout.pipeline, ordered)) {
        for (const control::Register& worker : ordered) {
          layout.workers.push_back(worker.name);
        }
        return layout;
      }
    }
    if (options.concurrency > 0) {
      break;  // what was asked for is not lowered
    }
  }
  return DoesNotFit(spec, ordered, options.concurrency > 0 ? wanted : 1);
}

coordinator::ClusterPlan ToClusterPlan(const model::ModelSpec& spec,
                                       const ClusterLayout& layout,
                                       bool threads_given) {
  coordinator::ClusterPlan plan;
  for (size_t stage = 0; stage < layout.workers.size(); ++stage) {
    coordinator::StageSeat seat;
    seat.worker = layout.workers[stage];
    seat.stage = ToControl(layout.pipeline.stages[stage], threads_given);
    seat.memory_bytes = ResidentBytes(spec, layout.pipeline, stage, 1);
    plan.seats.push_back(std::move(seat));
  }
  plan.limits = layout.pipeline.limits;
  plan.window = MakeLinkOptions(layout.pipeline, 1, true, true).window;
  plan.stage_window = MakeLinkOptions(layout.pipeline, 1, true, false).window;
  return plan;
}

absl::StatusOr<PlannedRoute> ReadPlanFile(const std::string& path,
                                          const model::ModelSpec& spec) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, kPlanBytesMax));
  MILLRACE_ASSIGN_OR_RETURN(
      const Json document, ParseJson(text, path, {.bytes_max = kPlanBytesMax}));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject plan,
                            JsonObject::From(document, path));
  MILLRACE_RETURN_IF_ERROR(plan.Integer("version", 1, 1).status());
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject model, plan.Object("model"));
  MILLRACE_ASSIGN_OR_RETURN(const std::string digest, model.String("digest"));
  if (digest != spec.digest) {
    return model.ErrorAt("digest", "is that of another model");
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::string placement,
                            plan.StringOr("placement", ""));
  if (placement == "streamed") {
    return WithHint(plan.ErrorAt("placement",
                                 "is streamed: workers of this version hold "
                                 "all experts in memory and cannot run it"),
                    "make a plan without --placement streamed");
  }
  const Json* route = plan.Find("route");
  if (route == nullptr || !route->is_array() || route->get_array().empty()) {
    return plan.ErrorAt("route", "must be a list of at least one segment");
  }
  const auto layers = static_cast<int64_t>(spec.layers.size());
  PlannedRoute out;
  if (const Json* microbatches = plan.Find("microbatches");
      microbatches != nullptr && !microbatches->is_null()) {
    MILLRACE_ASSIGN_OR_RETURN(
        out.microbatches,
        plan.Integer("microbatches", 1, std::numeric_limits<int64_t>::max()));
  }
  std::vector<PlannedSeat>& seats = out.seats;
  int64_t next = 0;
  for (const Json& entry : route->get_array()) {
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject segment,
                              JsonObject::From(entry, path, "route"));
    PlannedSeat seat;
    MILLRACE_ASSIGN_OR_RETURN(seat.worker, segment.String("node"));
    MILLRACE_ASSIGN_OR_RETURN(seat.first_layer,
                              segment.Integer("first_layer", 0, layers - 1));
    MILLRACE_ASSIGN_OR_RETURN(
        const int64_t last,
        segment.Integer("last_layer", seat.first_layer, layers - 1));
    if (seat.first_layer != next) {
      return segment.ErrorAt(
          "first_layer",
          absl::StrCat("must be ", next, ", where the one before ends"));
    }
    const bool twice = std::any_of(
        seats.begin(), seats.end(),
        [&](const PlannedSeat& other) { return other.worker == seat.worker; });
    if (twice) {
      return segment.ErrorAt("node",
                             "holds two segments, which is not in this "
                             "version");
    }
    next = last + 1;
    seats.push_back(std::move(seat));
  }
  if (next != layers) {
    return plan.ErrorAt("route",
                        absl::StrCat("ends before layer ", layers - 1));
  }
  return out;
}

}  // namespace millrace::cli
