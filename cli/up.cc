#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "cli/cluster_engine.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_host.h"
#include "cli/ready_event.h"
#include "cli/server_options.h"
#include "cli/worker_processes.h"
#include "transport/endpoint.h"

namespace millrace::cli {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(200);
constexpr absl::Duration kWorkersDeadline = absl::Seconds(4);

class UpCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "up"; }
  [[nodiscard]] const char* summary() const override {
    return "A whole cluster on this machine: coordinator and worker processes";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace up model.gguf --stages 3 --port 8080";
  }
  void Define(CLI::App& app) override {
    app.add_option("MODEL", model_, "Model directory or GGUF file")->required();
    server_.Define(app, true);
    compute_.Define(app);
    sampling_.Define(app);
  }
  absl::Status Run(Console& console) override;

 private:
  [[nodiscard]] std::vector<std::vector<std::string>> WorkerArguments(
      const ComputeOptions& compute, const transport::Endpoint& control) const;
  // Waits for the cluster; kCancelled after an interrupt.
  static absl::Status AwaitCluster(ClusterEngine& engine);

  std::string model_;
  ServerFlags server_;
  ComputeFlags compute_;
  SamplingFlags sampling_;
};

// Names sort in the order of the route: the cluster seats workers by name.
std::string WorkerName(int64_t index, int64_t count) {
  std::string digits = absl::StrCat(index);
  const size_t width = absl::StrCat(count - 1).size();
  digits.insert(0, width - digits.size(), '0');
  return absl::StrCat("stage-", digits);
}

std::vector<std::vector<std::string>> UpCommand::WorkerArguments(
    const ComputeOptions& compute, const transport::Endpoint& control) const {
  std::vector<std::vector<std::string>> lines;
  for (int64_t i = 0; i < compute.stages; ++i) {
    std::vector<std::string> line = {"stage-worker",
                                     "--coordinator",
                                     transport::FormatEndpoint(control),
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--name",
                                     WorkerName(i, compute.stages),
                                     "--threads",
                                     absl::StrCat(compute.num_threads),
                                     "--kernels",
                                     compute_.kernels};
    if (compute.memory_bytes.has_value()) {
      line.push_back("--memory");
      line.push_back(absl::StrCat(*compute.memory_bytes));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

absl::Status UpCommand::AwaitCluster(ClusterEngine& engine) {
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(const bool ready,
                              engine.AwaitReady(kPollInterval));
    if (ready) {
      return absl::OkStatus();
    }
    if (Interrupts() > 0) {
      return absl::CancelledError("interrupted while starting");
    }
  }
}

absl::Status UpCommand::Run(Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(ComputeOptions compute, Validate(compute_, true));
  MILLRACE_ASSIGN_OR_RETURN(ModelHost host,
                            OpenModel(model_, std::move(compute)));
  MILLRACE_ASSIGN_OR_RETURN(
      const SamplingChoice sampling,
      Validate(sampling_, host.checkpoint->generation_defaults()));
  ClusterEngine::Options options;
  options.checkpoint = host.checkpoint.get();
  options.model_path = model_;
  options.compute = host.compute;
  options.threads_given = true;
  options.num_workers = static_cast<int>(host.compute.stages);
  options.control = {"127.0.0.1", 0};
  options.data = {"127.0.0.1", 0};
  options.console = &console;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterEngine> engine,
                            ClusterEngine::Start(std::move(options)));
  // The listener first: a port in use must not cost the loading of a model.
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<coordinator::ApiServer> server,
      StartApi(server_, ServedModelOf(host, sampling, server_, model_),
               *engine));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerProcesses> processes,
                            WorkerProcesses::Start(WorkerArguments(
                                host.compute, engine->control_endpoint())));
  MILLRACE_RETURN_IF_ERROR(AwaitCluster(*engine));
  console.Progress("");
  std::vector<ReadyWorker> workers;
  const std::vector<pid_t> pids = processes->pids();
  const std::vector<coordinator::StageSnapshot> stages =
      engine->Snapshot().stages;
  for (size_t i = 0; i < stages.size() && i < pids.size(); ++i) {
    workers.push_back(
        {stages[i].name, pids[i], stages[i].first_layer, stages[i].last_layer});
  }
  ReportReady(console, server->url(), workers);
  ServeUntilInterrupted(*server, console);
  processes->LetEnd();
  engine->Stop(true);
  processes->Stop(kWorkersDeadline);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeUpCommand() {
  return std::make_unique<UpCommand>();
}

}  // namespace millrace::cli
