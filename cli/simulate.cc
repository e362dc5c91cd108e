#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/simulation/load_flags.h"
#include "cli/simulation/load_report_output.h"
#include "coordinator/simulation/load_simulation.h"
#include "coordinator/simulation/pipeline_of_plan.h"
#include "coordinator/simulation/rate_search.h"
#include "planner/plan_reader.h"

namespace millrace::cli {
namespace {

using coordinator::LoadOptions;
using coordinator::LoadProgress;
using coordinator::LoadReport;
using coordinator::LoadSimulation;
using coordinator::RateTrial;
using coordinator::SimulatedPipeline;

constexpr int64_t kPlanBytesMax = int64_t{256} << 20;
// Requests one at a time take far more passes than together.
constexpr int64_t kRequestsAlone = 1000;

class SimulateCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "simulate"; }
  [[nodiscard]] const char* summary() const override {
    return "Play a load against a plan: latencies before anything is loaded";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace simulate plan.json --rate 4 --slo ttft=2s,tpot=50ms";
  }
  void Define(CLI::App& app) override {
    app.add_option("PLAN", plan_, "Plan file, from plan --out")->required();
    flags_.Define(app);
  }
  absl::Status Run(Console& console) override;

 private:
  absl::StatusOr<LoadReport> Play(const SimulatedPipeline& pipeline,
                                  const LoadOptions& options,
                                  absl::string_view doing, Console& console);
  // Leaves the run at the highest rate that meets the limits in `load`.
  absl::Status FindHighestRate(const SimulatedPipeline& pipeline,
                               SimulatedLoad& load, Console& console);

  std::string plan_;
  LoadFlags flags_;
};

absl::Status SimulateCommand::Run(Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(plan_, kPlanBytesMax));
  MILLRACE_ASSIGN_OR_RETURN(const planner::PlanFile file,
                            planner::ParsePlan(text, plan_));
  MILLRACE_ASSIGN_OR_RETURN(const coordinator::BeyondPlan beyond,
                            flags_.Beyond());
  MILLRACE_ASSIGN_OR_RETURN(
      const SimulatedPipeline pipeline,
      coordinator::PipelineOfPlan(file.costs, file.cluster, file.options,
                                  file.plan, beyond));
  SimulatedLoad load;
  load.model = file.costs.name;
  load.beyond = beyond;
  MILLRACE_ASSIGN_OR_RETURN(load.options, flags_.Options(pipeline, []() {
    return Interrupts() == 0;
  }));
  if (flags_.find_rate) {
    MILLRACE_RETURN_IF_ERROR(FindHighestRate(pipeline, load, console));
  } else {
    MILLRACE_ASSIGN_OR_RETURN(
        load.report, Play(pipeline, load.options, "simulating", console));
  }
  console.Progress("");
  if (console.json()) {
    console.OutJson(LoadReportToJson(
        load, absl::FormatTime("%Y%m%d-%H%M%S", SystemClock().Now(),
                               absl::LocalTimeZone())));
  } else {
    console.Out(LoadReportText(load));
  }
  if (load.options.limits.any() && !load.report.MeetsLimits()) {
    return AnswerIsNo(
        "--slo",
        load.report.failed() > 0
            ? absl::StrCat(load.report.failed(), " of ",
                           Counted(load.report.requests, "request"), " failed")
            : "more than 1 % of the requests miss a limit",
        "--find-rate gives the highest rate that meets it");
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadReport> SimulateCommand::Play(
    const SimulatedPipeline& pipeline, const LoadOptions& options,
    absl::string_view doing, Console& console) {
  constexpr absl::Duration kBetween = absl::Milliseconds(200);
  LoadOptions watched = options;
  const SystemClock clock;
  absl::Duration shown = clock.Monotonic();
  watched.go_on = [&](const LoadProgress& progress) {
    if (const absl::Duration now = clock.Monotonic(); now - shown > kBetween) {
      shown = now;
      console.Progress(absl::StrFormat("%s: %d of %d requests", doing,
                                       progress.ended, progress.requests));
    }
    return Interrupts() == 0;
  };
  return LoadSimulation(pipeline, watched).Run();
}

absl::Status SimulateCommand::FindHighestRate(const SimulatedPipeline& pipeline,
                                              SimulatedLoad& load,
                                              Console& console) {
  load.rate_searched = true;
  // One request at a time: what that misses no rate meets, and its throughput
  // is a rate to start from.
  LoadOptions alone = load.options;
  alone.workload.arrivals.concurrency = 1;
  alone.workload.requests = std::min(alone.workload.requests, kRequestsAlone);
  MILLRACE_ASSIGN_OR_RETURN(
      const LoadReport first,
      Play(pipeline, alone, "one request at a time", console));
  if (!first.MeetsLimits()) {
    return AnswerIsNo(
        "--slo",
        absl::StrCat("no rate meets it: one request at a time misses it (",
                     first.good, " of ", first.requests, " keep it",
                     first.failed() > 0
                         ? absl::StrCat(", ", first.failed(), " fail")
                         : "",
                     ")"),
        "allow more time, or plan for --objective latency");
  }
  int64_t runs = 0;
  const auto play = [&](double rate) -> absl::StatusOr<RateTrial> {
    LoadOptions options = load.options;
    ++runs;
    options.workload.arrivals.rate = rate;
    MILLRACE_ASSIGN_OR_RETURN(
        LoadReport report,
        Play(pipeline, options,
             absl::StrFormat("run %d, %.4g requests/s", runs, rate), console));
    const RateTrial trial{.meets = report.MeetsLimits(),
                          .at_once = report.arriving * 100 < report.duration};
    if (trial.meets && rate > load.options.workload.arrivals.rate) {
      load.options.workload.arrivals.rate = rate;
      load.rate_unbounded = trial.at_once;
      load.report = std::move(report);
    }
    return trial;
  };
  MILLRACE_ASSIGN_OR_RETURN(
      const std::optional<double> rate,
      coordinator::FindRate(first.PerSecond(first.completed), play));
  if (!rate.has_value()) {
    return AnswerIsNo("--slo", "no rate meets it",
                      "allow more time, or less --burstiness");
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() {
  return std::make_unique<SimulateCommand>();
}

}  // namespace millrace::cli
