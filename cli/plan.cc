#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "cli/check/live_nodes.h"
#include "cli/commands.h"
#include "cli/exit_on_interrupt.h"
#include "cli/interrupt_flag.h"
#include "cli/live_cluster.h"
#include "cli/plan_inputs.h"
#include "cli/plan_page.h"
#include "cli/plan_single_node.h"
#include "cli/plan_table.h"
#include "cli/plan_verify.h"
#include "cli/replan.h"
#include "planner/cluster_codec.h"
#include "planner/plan_codec.h"
#include "planner/planner.h"

namespace millrace::cli {
namespace {

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
  absl::Status CheckNotInput(const char* option, const std::string& file) const;
  // UsageError where options of a cluster stand beside --single-node.
  absl::Status CheckSingleNode() const;
  // The cluster file, the live workers, or the one with what the others lack.
  absl::StatusOr<LiveCluster> ReadCluster(Console& console) const;
  absl::Status RunSingleNode(Console& console) const;
  // Writes --out and --html and prints the plan; a document only once on
  // stdout.
  absl::Status Show(const planner::Plan& plan, const PlanInputs& inputs,
                    const std::vector<std::string>& measured,
                    Console& console) const;

  PlanFlags flags_;
  ReplanFlags replan_;
  std::string out_;
  std::string html_;
  SingleNodeFlags single_node_;
  std::string workers_;
  bool insecure_ = false;
  std::string verify_;
};

void PlanCommand::Define(CLI::App& app) {
  app.add_option("MODEL", flags_.model,
                 "Model directory, GGUF file, or a lone config.json");
  app.add_option("--costs", flags_.costs,
                 "Cost file, JSON or YAML, in place of a model");
  app.add_option("--cluster", flags_.cluster, "Cluster file, JSON or YAML");
  app.add_option("--context", flags_.contexts,
                 "Context lengths, as 4096,32768; the first must fit");
  app.add_option("--objective", flags_.objective,
                 "throughput (default), concurrency, latency, nodes or energy");
  app.add_option("--placement", flags_.placement,
                 "auto (default), contiguous, interleaved, or streamed: nodes "
                 "may read experts from NVMe");
  app.add_option("--prompt-len", flags_.prompt_len,
                 "Tokens of a prompt, for TTFT");
  app.add_option("--output-len", flags_.output_len, "Tokens of an answer");
  app.add_option("--chunk", flags_.chunk, "Prefill rows per pass");
  app.add_option("--concurrency", flags_.concurrency,
                 "Sequences that must fit, and that run at once");
  app.add_option("--kv", flags_.kv, "f16, f32, bf16 or int8 keys and values");
  app.add_option("--out", out_,
                 "Write the plan, as JSON, to this file; -: to stdout");
  app.add_option("--html", html_,
                 "Write the plan, as a page with pictures, to this file");
  single_node_.Define(app);
  replan_.Define(app);
  app.add_option("--workers", workers_,
                 "Take what the cluster file lacks, or the whole cluster, from "
                 "live workers: their --control, HOST:PORT,HOST:PORT");
  app.add_flag("--insecure", insecure_,
               "The network is trusted: ask workers off loopback");
  app.add_option("--verify", verify_,
                 "Measure on the cluster that runs this plan and show the "
                 "error: http://HOST:PORT of its coordinator");
}

absl::Status PlanCommand::CheckSingleNode() const {
  const std::array<std::pair<const char*, bool>, 7> of_clusters = {{
      {"--cluster", !flags_.cluster.empty()},
      {"--costs", !flags_.costs.empty()},
      {"--workers", !workers_.empty()},
      {"--insecure", insecure_},
      {"--verify", !verify_.empty()},
      {"--objective", !flags_.objective.empty()},
      {"--placement", !flags_.placement.empty()},
  }};
  for (const auto& [option, is_given] : of_clusters) {
    if (single_node_.chosen && is_given) {
      return UsageError("--single-node", absl::StrCat("goes without ", option),
                        absl::StrCat("leave ", option, " out"));
    }
  }
  return absl::OkStatus();
}

// What is written must not be what the plan is made from. `--from` may be
// changed in place: the new plan holds all that the old one did.
absl::Status PlanCommand::CheckNotInput(const char* option,
                                        const std::string& file) const {
  for (const std::string& input :
       {flags_.costs, flags_.cluster, flags_.model}) {
    std::error_code error;
    if (!file.empty() && !input.empty() &&
        std::filesystem::equivalent(file, input, error)) {
      return UsageError(option, "names a file that the plan is made from",
                        "give another");
    }
  }
  return absl::OkStatus();
}

absl::Status PlanCommand::CheckFlags() const {
  if (html_ == "-") {
    return UsageError("--html", "does not go to stdout", "give a file");
  }
  MILLRACE_RETURN_IF_ERROR(CheckNotInput("--out", out_));
  MILLRACE_RETURN_IF_ERROR(CheckNotInput("--html", html_));
  if (!html_.empty() && html_ == out_) {
    return UsageError("--html", "names the file of --out", "give another");
  }
  if (!html_.empty() && single_node_.chosen) {
    return UsageError("--html", "goes without --single-node",
                      "use --json and --out");
  }
  MILLRACE_RETURN_IF_ERROR(single_node_.CheckUnused());
  if (replan_.chosen()) {
    const char* other = single_node_.chosen ? "--single-node"
                        : !workers_.empty() ? "--workers"
                        : !verify_.empty()  ? "--verify"
                        : !html_.empty()    ? "--html"
                                            : nullptr;
    if (other != nullptr) {
      return UsageError(other, "goes without --from", "leave it out");
    }
    return replan_.Check(flags_);
  }
  MILLRACE_RETURN_IF_ERROR(CheckSingleNode());
  MILLRACE_RETURN_IF_ERROR(CheckPlanFlags(flags_));
  if (flags_.placement == "streamed" && !verify_.empty()) {
    return UsageError("--verify",
                      "goes without --placement streamed: workers of this "
                      "version hold all experts in memory",
                      "leave it out");
  }
  if (flags_.cluster.empty() && workers_.empty() && !single_node_.chosen) {
    return UsageError("--cluster", "is missing",
                      "give a cluster file, see the user guide, or --workers");
  }
  return absl::OkStatus();
}

absl::StatusOr<LiveCluster> PlanCommand::ReadCluster(Console& console) const {
  std::optional<planner::Cluster> given;
  if (!flags_.cluster.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                              ReadFile(flags_.cluster, kPlanInputBytesMax));
    MILLRACE_ASSIGN_OR_RETURN(given,
                              planner::ParseCluster(text, flags_.cluster));
  }
  if (workers_.empty()) {
    return LiveCluster{*std::move(given), {}};
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<transport::Endpoint> nodes,
                            ParseNodes("--workers", workers_, insecure_));
  console.Progress(
      absl::StrCat("measuring ", Counted(std::ssize(nodes), "worker")));
  const InterruptFlag interrupted;
  absl::StatusOr<LiveCluster> live =
      AskCluster(given, nodes, interrupted.flag());
  console.Progress("");
  return live;
}

absl::Status PlanCommand::RunSingleNode(Console& console) const {
  MILLRACE_ASSIGN_OR_RETURN(const ModelWorkload workload,
                            ReadModelWorkload(flags_, 1));
  return PlanOnSingleNode(*workload.model, single_node_,
                          {workload.options.contexts[0],
                           workload.options.sequences(), workload.shape, out_},
                          console);
}

absl::Status PlanCommand::Show(const planner::Plan& plan,
                               const PlanInputs& inputs,
                               const std::vector<std::string>& measured,
                               Console& console) const {
  Json document =
      planner::PlanToJson(plan, inputs.costs, inputs.cluster, inputs.options);
  if (!flags_.model.empty()) {
    // Where `check` lets workers look for it.
    document.as_object()["model"].as_object()["path"] = flags_.model;
  }
  for (const std::string& key : measured) {
    document.as_object()["provenance"]
        .as_object()[absl::StrCat("inputs.cluster.", key)] = "measured";
  }
  std::optional<Verification> verification;
  if (!verify_.empty() && plan.fits) {
    MILLRACE_ASSIGN_OR_RETURN(verification, VerifyPlan(plan, verify_, console));
    document.as_object()["verify"] = VerificationJson(*verification);
  }
  if (!out_.empty() && out_ != "-") {
    MILLRACE_RETURN_IF_ERROR(
        WriteFileAtomically(out_, absl::StrCat(WriteJson(document), "\n")));
  }
  if (!html_.empty()) {
    MILLRACE_RETURN_IF_ERROR(
        WritePlanPage(plan, inputs, document, verification, html_));
  }
  if (console.json()) {
    console.OutJson(document);
  } else if (out_ == "-") {
    console.Out(absl::StrCat(WriteJson(document), "\n"));
  } else {
    console.Out(absl::StrCat(
        PlanTable(plan, inputs.cluster),
        verification.has_value() ? VerificationText(*verification) : ""));
  }
  return absl::OkStatus();
}

absl::StatusOr<planner::Plan> Compute(const PlanInputs& inputs,
                                      Console& console) {
  const ExitOnInterrupt guard("planning", console);
  return planner::MakePlan(ToPlanInput(inputs));
}

absl::Status PlanCommand::Run(Console& console) {
  MILLRACE_RETURN_IF_ERROR(CheckFlags());
  if (replan_.chosen()) {
    return PlanFromPlan(replan_, flags_, out_, console);
  }
  if (single_node_.chosen) {
    return RunSingleNode(console);
  }
  MILLRACE_ASSIGN_OR_RETURN(LiveCluster live, ReadCluster(console));
  MILLRACE_ASSIGN_OR_RETURN(const PlanInputs inputs,
                            ReadPlanInputs(flags_, std::move(live.cluster)));
  MILLRACE_ASSIGN_OR_RETURN(const planner::Plan plan, Compute(inputs, console));
  MILLRACE_RETURN_IF_ERROR(Show(plan, inputs, live.measured, console));
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
