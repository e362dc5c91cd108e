#include "cli/check/check_command.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/check/checked_plan.h"
#include "cli/check/findings.h"
#include "cli/check/live_nodes.h"
#include "cli/interrupt.h"
#include "cli/interrupt_flag.h"
#include "cli/version.h"
#include "proto/control_messages.h"

namespace millrace::cli {
namespace {

constexpr int64_t kPlanBytesMax = int64_t{256} << 20;

class CheckCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "check"; }
  [[nodiscard]] const char* summary() const override {
    return "Whether live nodes can run a plan, before any weight is read";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace check plan.json --workers 10.0.0.2:7100,10.0.0.3:7100 "
           "--insecure";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  absl::StatusOr<std::vector<Finding>> Look(
      const CheckedPlan& plan, const std::vector<transport::Endpoint>& nodes,
      Console& console) const;

  std::string plan_;
  std::string workers_;
  std::string model_;
  bool insecure_ = false;
};

void CheckCommand::Define(CLI::App& app) {
  app.add_option("PLAN", plan_, "Plan file made by `plan --out`")->required();
  app.add_option("--workers", workers_,
                 "Where nodes answer, HOST:PORT,HOST:PORT: their --control")
      ->required();
  app.add_option("--model", model_,
                 "The model's path as workers are to be told; default: the "
                 "plan's");
  app.add_flag("--insecure", insecure_,
               "The network is trusted: ask nodes off loopback");
}

// Those of the stages that answered, in their order.
struct Found {
  std::vector<const CheckedPlan::Stage*> stages;
  std::vector<const NodeAnswer*> answers;
  std::vector<transport::Endpoint> nodes;
};

absl::Status Interrupted() {
  return Interrupts() > 0 ? absl::CancelledError("interrupted while checking")
                          : absl::OkStatus();
}

absl::StatusOr<std::vector<Finding>> CheckCommand::Look(
    const CheckedPlan& plan, const std::vector<transport::Endpoint>& nodes,
    Console& console) const {
  const InterruptFlag interrupted;
  console.Progress(absl::StrCat("asking ", Counted(std::ssize(nodes), "node")));
  const std::vector<NodeAnswer> answers =
      DescribeNodes(nodes, interrupted.flag());
  std::map<std::string, const NodeAnswer*> by_name;
  std::vector<Finding> findings = JudgeReachable(plan, answers, by_name);
  std::map<std::string, transport::Endpoint> addresses;
  Found found;
  for (const CheckedPlan::Stage& stage : plan.stages) {
    const auto answer = by_name.find(stage.node);
    if (answer != by_name.end()) {
      found.stages.push_back(&stage);
      found.answers.push_back(answer->second);
      found.nodes.push_back(
          nodes[static_cast<size_t>(answer->second - answers.data())]);
      addresses[stage.node] = found.nodes.back();
    }
  }
  for (size_t i = 0; i < found.stages.size(); ++i) {
    const std::string& node = found.stages[i]->node;
    const control::NodeDescription& description =
        *found.answers[i]->description;
    findings.push_back(
        JudgeVersion(node, description, Version(), control::kWireVersion));
    findings.push_back(JudgeClock(node, *found.answers[i]));
    findings.push_back(JudgeMemory(*found.stages[i], description));
    findings.push_back(JudgeRdma(node, description));
  }
  MILLRACE_RETURN_IF_ERROR(Interrupted());
  console.Progress("looking for the model");
  const auto models =
      FindModels(found.nodes, model_.empty() ? plan.model_path : model_,
                 interrupted.flag());
  for (size_t i = 0; i < models.size(); ++i) {
    findings.push_back(JudgeModel(found.stages[i]->node, plan, models[i]));
  }
  MILLRACE_RETURN_IF_ERROR(Interrupted());
  console.Progress("measuring links");
  std::vector<const CheckedPlan::Hop*> hops;
  std::vector<NodePair> links;
  for (const CheckedPlan::Hop& hop : plan.hops) {
    if (addresses.contains(hop.from) && addresses.contains(hop.to)) {
      hops.push_back(&hop);
      links.push_back({addresses[hop.from], addresses[hop.to]});
    }
  }
  const auto rounds = MeasureLinks(links, interrupted.flag());
  for (size_t i = 0; i < rounds.size(); ++i) {
    findings.push_back(JudgeLink(*hops[i], rounds[i]));
  }
  console.Progress("");
  MILLRACE_RETURN_IF_ERROR(Interrupted());
  return findings;
}

void Show(Console& console, const std::vector<Finding>& findings, bool ok,
          const std::string& verdict) {
  if (console.json()) {
    boost::json::array checks;
    for (const Finding& finding : findings) {
      checks.push_back(boost::json::object{{"name", finding.name},
                                           {"node", finding.node},
                                           {"ok", finding.ok},
                                           {"value", finding.value},
                                           {"why", finding.why},
                                           {"hint", finding.hint}});
    }
    console.OutJson(boost::json::object{
        {"ok", ok}, {"verdict", verdict}, {"checks", std::move(checks)}});
    return;
  }
  size_t width = 4;
  for (const Finding& finding : findings) {
    width = std::max(width, finding.node.size());
  }
  for (const Finding& finding : findings) {
    console.Out(absl::StrFormat(
        "%-4s  %-9s  %-*s  %s\n", finding.ok ? "ok" : "FAIL", finding.name,
        static_cast<int>(width), finding.node, finding.why));
    if (!finding.hint.empty()) {
      console.Out(absl::StrFormat("      hint: %s\n", finding.hint));
    }
  }
  console.Out(absl::StrCat(verdict, "\n"));
}

absl::Status CheckCommand::Run(Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<transport::Endpoint> nodes,
                            ParseNodes("--workers", workers_, insecure_));
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(plan_, kPlanBytesMax));
  MILLRACE_ASSIGN_OR_RETURN(const CheckedPlan plan,
                            ReadCheckedPlan(text, plan_));
  if (model_.empty() && plan.model_path.empty()) {
    return UsageError("--model",
                      "is missing, and the plan does not say where "
                      "the model lies",
                      "give the path that the coordinator will have");
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Finding> findings,
                            Look(plan, nodes, console));
  const bool ok = std::all_of(findings.begin(), findings.end(),
                              [](const Finding& each) { return each.ok; });
  const std::string verdict = VerdictOf(findings);
  Show(console, findings, ok, verdict);
  if (!ok) {
    return AnswerIsNo(plan_, verdict, "each failed check has a hint");
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeCheckCommand() {
  return std::make_unique<CheckCommand>();
}

}  // namespace millrace::cli
