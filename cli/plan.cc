#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "cli/check/live_nodes.h"
#include "cli/commands.h"
#include "cli/compute_options.h"
#include "cli/interrupt_flag.h"
#include "cli/live_cluster.h"
#include "cli/number_list.h"
#include "cli/pipeline_config.h"
#include "cli/plan_single_node.h"
#include "cli/plan_table.h"
#include "cli/plan_verify.h"
#include "cli/planned_model.h"
#include "planner/cluster_codec.h"
#include "planner/plan_codec.h"
#include "planner/planner.h"
#include "stage-worker/runtime/stage_shape.h"

namespace millrace::cli {
namespace {

constexpr int64_t kClusterBytesMax = int64_t{64} << 20;
constexpr int64_t kContextDefault = 4096;
constexpr int64_t kLengthMax = int64_t{1} << 30;

// What a model is planned for, and how a stage of it is sized.
struct Workload {
  planner::PlanOptions options;
  model::StageShape shape;
  int64_t process_bytes = 0;  // of a worker, beside its stage
};

class PlanCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "plan"; }
  [[nodiscard]] const char* summary() const override {
    return "Place a model on the nodes of a cluster, before anything is loaded";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace plan model.gguf --cluster "
           "deploy/examples/three-nodes.yaml";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  absl::Status CheckFlags() const;
  // The cluster file, the live workers, or the one with what the others lack.
  absl::StatusOr<LiveCluster> ReadCluster(Console& console) const;
  absl::Status RunSingleNode(Console& console);
  // The lengths to plan for, within the model's own.
  absl::StatusOr<std::vector<int64_t>> Contexts(
      const model::ModelSpec& spec) const;
  absl::StatusOr<Workload> MakeWorkload(const PlannedModel& model) const;

  std::string model_;
  std::string cluster_;
  std::string contexts_;
  std::string objective_ = "throughput";
  std::string placement_ = "auto";
  std::string out_;
  std::string costs_;
  std::string html_;
  std::string kv_;
  SingleNodeFlags single_node_;
  std::string workers_;
  bool insecure_ = false;
  std::string verify_;
  std::optional<int64_t> prompt_len_;
  std::optional<int64_t> output_len_;
  std::optional<int64_t> chunk_;
  std::optional<int64_t> concurrency_;
};

void PlanCommand::Define(CLI::App& app) {
  app.add_option("MODEL", model_,
                 "Model directory, GGUF file, or a lone config.json");
  app.add_option("--cluster", cluster_, "Cluster file, JSON or YAML");
  app.add_option("--context", contexts_, "Context lengths, as 4096,32768");
  app.add_option("--objective", objective_, "throughput");
  app.add_option("--placement", placement_, "auto or contiguous");
  app.add_option("--prompt-len", prompt_len_, "Tokens of a prompt, for TTFT");
  app.add_option("--output-len", output_len_, "Tokens of an answer");
  app.add_option("--chunk", chunk_, "Prefill rows per pass");
  app.add_option("--concurrency", concurrency_, "Sequences that must fit");
  app.add_option("--kv", kv_, "f16, f32, bf16 or int8 keys and values");
  app.add_option("--out", out_, "Write the plan, as JSON, to this file");
  app.add_option("--costs", costs_, "Not in this version");
  app.add_option("--html", html_, "Not in this version");
  single_node_.Define(app);
  app.add_option("--workers", workers_,
                 "Take what the cluster file lacks, or the whole cluster, from "
                 "live workers: their --control, HOST:PORT,HOST:PORT");
  app.add_flag("--insecure", insecure_,
               "The network is trusted: ask workers off loopback");
  app.add_option("--verify", verify_,
                 "Measure on the cluster that runs this plan and show the "
                 "error: http://HOST:PORT of its coordinator");
}

absl::Status PlanCommand::CheckFlags() const {
  const auto not_yet = [](absl::string_view option) {
    return UsageError(option, "is not in this version of millrace");
  };
  if (!costs_.empty()) {
    return not_yet("--costs");
  }
  if (!html_.empty()) {
    return not_yet("--html");
  }
  if (objective_ != "throughput") {
    return UsageError(
        "--objective",
        absl::StrCat("'", Printable(objective_), "' is not in this version"),
        "give throughput");
  }
  if (placement_ != "auto" && placement_ != "contiguous") {
    return UsageError(
        "--placement",
        absl::StrCat("'", Printable(placement_), "' is not in this version"),
        "give contiguous");
  }
  if (model_.empty()) {
    return UsageError("plan", "needs a model", "give its path");
  }
  MILLRACE_RETURN_IF_ERROR(single_node_.CheckUnused());
  if (single_node_.chosen && !cluster_.empty()) {
    return UsageError("--single-node", "goes without --cluster",
                      "give --memory and --nvme-bandwidth");
  }
  if (cluster_.empty() && workers_.empty() && !single_node_.chosen) {
    return UsageError("--cluster", "is missing",
                      "give a cluster file, see the user guide, or --workers");
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view option,
                         const std::optional<int64_t>& value) {
  if (value.has_value() && (*value < 1 || *value > kLengthMax)) {
    return UsageError(option, absl::StrCat(*value, " is out of range"),
                      absl::StrCat("give a number from 1 to ", kLengthMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> PlanCommand::Contexts(
    const model::ModelSpec& spec) const {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> contexts,
                            ParseNumberList(contexts_, "--context", "length"));
  absl::string_view option = "--context";
  if (contexts.empty() && prompt_len_.has_value() && output_len_.has_value()) {
    option = "--prompt-len and --output-len";
    contexts.push_back(*prompt_len_ + *output_len_);
  } else if (contexts.empty()) {
    contexts.push_back(std::min(kContextDefault, spec.context_length));
  }
  for (const int64_t context : contexts) {
    if (context < 1) {
      return UsageError(
          option, absl::StrCat(context, " is out of range"),
          absl::StrCat("give numbers from 1 to ", spec.context_length));
    }
    MILLRACE_RETURN_IF_ERROR(CheckContext(option, context, spec));
  }
  return contexts;
}

absl::StatusOr<Workload> PlanCommand::MakeWorkload(
    const PlannedModel& model) const {
  const model::ModelSpec& spec = model.spec;
  MILLRACE_RETURN_IF_ERROR(CheckLength("--prompt-len", prompt_len_));
  MILLRACE_RETURN_IF_ERROR(CheckLength("--output-len", output_len_));
  MILLRACE_RETURN_IF_ERROR(CheckLength("--chunk", chunk_));
  MILLRACE_RETURN_IF_ERROR(CheckLength("--concurrency", concurrency_));
  Workload workload;
  planner::PlanOptions& options = workload.options;
  MILLRACE_ASSIGN_OR_RETURN(options.contexts, Contexts(spec));
  options.concurrency = concurrency_;
  options.prompt_len = prompt_len_;
  options.output_len = output_len_;
  options.chunk = chunk_;
  ComputeFlags flags;
  flags.kv = kv_;
  flags.chunk = chunk_;
  flags.context = options.contexts[0];
  MILLRACE_ASSIGN_OR_RETURN(ComputeOptions compute, Validate(flags, true));
  const PipelineConfig pipeline =
      MakePipelineConfig(spec, compute, concurrency_.value_or(1), {0});
  workload.shape = worker::ShapeOf(pipeline.stages[0]);
  workload.process_bytes =
      kProgramBytes + model.VectorsMax() * LinkBufferBytes(pipeline);
  return workload;
}

absl::Status PlanCommand::RunSingleNode(Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const PlannedModel model, OpenPlannedModel(model_));
  MILLRACE_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(model));
  return PlanOnSingleNode(model, single_node_,
                          {workload.options.contexts[0],
                           workload.options.sequences(), workload.shape, out_},
                          console);
}

absl::StatusOr<LiveCluster> PlanCommand::ReadCluster(Console& console) const {
  std::optional<planner::Cluster> given;
  if (!cluster_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                              ReadFile(cluster_, kClusterBytesMax));
    MILLRACE_ASSIGN_OR_RETURN(given, planner::ParseCluster(text, cluster_));
  }
  if (workers_.empty()) {
    return LiveCluster{*std::move(given), {}};
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<transport::Endpoint> nodes,
                            ParseNodes("--workers", workers_, insecure_));
  console.Progress(absl::StrCat("measuring ", nodes.size(), " workers"));
  const InterruptFlag interrupted;
  absl::StatusOr<LiveCluster> live =
      AskCluster(given, nodes, interrupted.flag());
  console.Progress("");
  return live;
}

absl::Status PlanCommand::Run(Console& console) {
  MILLRACE_RETURN_IF_ERROR(CheckFlags());
  if (single_node_.chosen) {
    return RunSingleNode(console);
  }
  MILLRACE_ASSIGN_OR_RETURN(const LiveCluster live, ReadCluster(console));
  const planner::Cluster& cluster = live.cluster;
  MILLRACE_ASSIGN_OR_RETURN(const PlannedModel model, OpenPlannedModel(model_));
  MILLRACE_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(model));
  const planner::ModelCosts costs = model.Costs(workload.shape);
  MILLRACE_ASSIGN_OR_RETURN(
      const planner::Plan plan,
      planner::MakePlan({costs, cluster, workload.options,
                         model.Scratch(workload.shape, workload.process_bytes),
                         true}));
  Json document = planner::PlanToJson(plan, costs, cluster, workload.options);
  // Where `check` lets workers look for it.
  document.as_object()["model"].as_object()["path"] = model_;
  for (const std::string& key : live.measured) {
    document.as_object()["provenance"]
        .as_object()[absl::StrCat("inputs.cluster.", key)] = "measured";
  }
  std::optional<Verification> verification;
  if (!verify_.empty() && plan.fits) {
    MILLRACE_ASSIGN_OR_RETURN(verification, VerifyPlan(plan, verify_, console));
    document.as_object()["verify"] = VerificationJson(*verification);
  }
  if (!out_.empty()) {
    MILLRACE_RETURN_IF_ERROR(
        WriteFileAtomically(out_, absl::StrCat(WriteJson(document), "\n")));
  }
  if (console.json()) {
    console.OutJson(document);
  } else {
    console.Out(absl::StrCat(
        PlanTable(plan, cluster),
        verification.has_value() ? VerificationText(*verification) : ""));
  }
  if (!plan.fits) {
    return AnswerIsNo("plan", plan.verdict,
                      plan.advice.empty() ? "give more or larger nodes"
                                          : plan.advice[0].change);
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakePlanCommand() {
  return std::make_unique<PlanCommand>();
}

}  // namespace millrace::cli
