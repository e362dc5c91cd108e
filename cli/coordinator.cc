#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "cli/cluster_engine.h"
#include "cli/commands.h"
#include "cli/endpoint_option.h"
#include "cli/interrupt.h"
#include "cli/model_host.h"
#include "cli/ready_event.h"
#include "cli/server_options.h"
#include "transport/endpoint.h"

namespace millrace::cli {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(200);
constexpr int kWorkersMax = 10'000;
constexpr char kHttpOption[] = "--http";

class CoordinatorCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "coordinator"; }
  [[nodiscard]] const char* summary() const override {
    return "Run a cluster of stage workers and serve the OpenAI API";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace coordinator model.gguf --control 10.0.0.1:7000 --http "
           "127.0.0.1:8080 --workers 3 --insecure";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  absl::Status ReadAddresses(ClusterEngine::Options& options);
  absl::Status ReadRoute(const model::ModelSpec& spec,
                         ClusterEngine::Options& options) const;

  std::string model_;
  std::string control_ = "127.0.0.1:7000";
  std::string data_;
  std::string http_ = "127.0.0.1:8080";
  std::string plan_;
  int workers_ = 0;
  ServerFlags server_;
  ComputeFlags compute_;
  SamplingFlags sampling_;
};

void CoordinatorCommand::Define(CLI::App& app) {
  app.add_option("MODEL", model_,
                 "Model directory or GGUF file; workers need "
                 "it too")
      ->required();
  app.add_option("--control", control_, "Where workers register, HOST:PORT");
  app.add_option("--data", data_,
                 "Where the last stage dials, HOST:PORT; default: the host of "
                 "--control and any free port");
  app.add_option(kHttpOption, http_, "Where clients connect, HOST:PORT");
  app.add_option("--workers", workers_, "Wait for so many workers");
  app.add_option("--plan", plan_, "Plan file made by `plan --out`");
  server_.Define(app, false);
  compute_.Define(app);
  sampling_.Define(app);
}

absl::Status CoordinatorCommand::ReadAddresses(
    ClusterEngine::Options& options) {
  MILLRACE_ASSIGN_OR_RETURN(options.control,
                            ParseEndpointOption("--control", control_));
  options.data = {options.control.host, 0};
  if (!data_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(options.data,
                              ParseEndpointOption("--data", data_));
  }
  MILLRACE_ASSIGN_OR_RETURN(const transport::Endpoint http,
                            ParseEndpointOption(kHttpOption, http_));
  server_.host = http.host;
  server_.port = http.port;
  server_.address_option = kHttpOption;
  return absl::OkStatus();
}

absl::Status CoordinatorCommand::ReadRoute(
    const model::ModelSpec& spec, ClusterEngine::Options& options) const {
  if (plan_.empty() == (workers_ == 0)) {
    return UsageError("coordinator", "needs either --workers or --plan",
                      "give --workers 3, or a file made by `plan --out`");
  }
  if (workers_ != 0 && (workers_ < 1 || workers_ > kWorkersMax)) {
    return UsageError("--workers", absl::StrCat(workers_, " is out of range"),
                      absl::StrCat("give a number from 1 to ", kWorkersMax));
  }
  options.num_workers = workers_;
  if (!plan_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(options.planned, ReadPlanFile(plan_, spec));
    options.num_workers = static_cast<int>(options.planned.seats.size());
  }
  return absl::OkStatus();
}

absl::Status CoordinatorCommand::Run(Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(ComputeOptions compute, Validate(compute_, true));
  if (compute_.stages.has_value()) {
    return UsageError("--stages", "follows from the workers here",
                      "give --workers");
  }
  ClusterEngine::Options options;
  MILLRACE_RETURN_IF_ERROR(ReadAddresses(options));
  MILLRACE_ASSIGN_OR_RETURN(ModelHost host,
                            OpenModel(model_, std::move(compute)));
  MILLRACE_ASSIGN_OR_RETURN(
      const SamplingChoice sampling,
      Validate(sampling_, host.checkpoint->generation_defaults()));
  MILLRACE_RETURN_IF_ERROR(ReadRoute(host.checkpoint->spec(), options));
  options.checkpoint = host.checkpoint.get();
  options.model_path = model_;
  options.compute = host.compute;
  options.threads_given = compute_.threads.has_value();
  options.insecure = server_.insecure;
  options.console = &console;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterEngine> engine,
                            ClusterEngine::Start(std::move(options)));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<coordinator::ApiServer> server,
      StartApi(server_, ServedModelOf(host, sampling, server_, model_),
               *engine));
  console.Note(
      absl::StrCat("workers register at ",
                   transport::FormatEndpoint(engine->control_endpoint())));
  bool ready = false;
  while (!ready && Interrupts() == 0) {
    // A plan that fails is tried again with the next worker: a coordinator
    // stays.
    const absl::StatusOr<bool> state = engine->AwaitReady(kPollInterval);
    ready = state.ok() && *state;
    if (!state.ok()) {
      console.Progress(std::string(state.status().message()));
      AwaitInterrupt(absl::Seconds(1));
    }
  }
  console.Progress("");
  if (ready) {
    ReportReady(console, server->url(), {});
  }
  ServeUntilInterrupted(*server, console);
  engine->Stop(false);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeCoordinatorCommand() {
  return std::make_unique<CoordinatorCommand>();
}

}  // namespace millrace::cli
