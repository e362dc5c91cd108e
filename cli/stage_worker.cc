#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "cli/commands.h"
#include "cli/compute_options.h"
#include "cli/endpoint_option.h"
#include "cli/host_name.h"
#include "cli/interrupt.h"
#include "cli/kernel_choices.h"
#include "cli/node_answers.h"
#include "cli/version.h"
#include "kernels/kernel_table.h"
#include "stage-worker/server/node_service.h"
#include "stage-worker/server/stage_factory.h"
#include "stage-worker/server/worker_server.h"
#include "transport/endpoint.h"

namespace millrace::cli {
namespace {

constexpr char kControlOption[] = "--control";

class StageWorkerCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "stage-worker"; }
  [[nodiscard]] const char* summary() const override {
    return "Hold one stage of a model and serve it to a coordinator";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace stage-worker --coordinator 10.0.0.1:7000 --listen "
           "10.0.0.2:7001 --name a --memory 44GB --models /srv/models "
           "--insecure";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  // Answers about `server` at --control; nothing without it.
  absl::StatusOr<std::unique_ptr<worker::NodeService>> StartService(
      Console& console, const ComputeOptions& compute,
      const worker::WorkerServer& server, const std::string& name) const;

  std::string coordinator_;
  std::string listen_ = "127.0.0.1:0";
  std::string control_;
  std::string name_;
  std::string models_;
  std::string memory_;
  std::string kernels_ = "auto";
  std::optional<int64_t> threads_;
  bool insecure_ = false;
};

void StageWorkerCommand::Define(CLI::App& app) {
  app.add_option("--coordinator", coordinator_,
                 "Control address of the coordinator, HOST:PORT")
      ->required();
  app.add_option("--name", name_,
                 "Name of this worker in plans; default: the "
                 "host's name");
  app.add_option("--memory", memory_, "Hard memory budget, as 44GB");
  app.add_option("--listen", listen_,
                 "Where the stage before this one dials, HOST:PORT");
  app.add_option("--control", control_,
                 "Where check, probe and plan reach this worker, HOST:PORT; "
                 "default: nowhere");
  app.add_option("--models", models_,
                 "Folder where models lie; default: the coordinator's path");
  app.add_option("--threads", threads_, "Threads; default: all cores");
  app.add_option("--kernels", kernels_, "auto, scalar, avx2, avx512 or neon");
  app.add_flag("--insecure", insecure_,
               "The network is trusted: link off loopback without encryption");
}

// One line of --json, or of the log, per change of state.
void Report(Console& console, const worker::WorkerEvent& event) {
  const char* name = nullptr;
  switch (event.kind) {
    case worker::WorkerEvent::Kind::kRegistered:
      name = "registered";
      break;
    case worker::WorkerEvent::Kind::kLoaded:
      name = "loaded";
      break;
    case worker::WorkerEvent::Kind::kActive:
      name = "active";
      break;
    case worker::WorkerEvent::Kind::kInactive:
      name = "inactive";
      break;
    case worker::WorkerEvent::Kind::kFailed:
      name = "failed";
      break;
    case worker::WorkerEvent::Kind::kDisconnected:
      name = "disconnected";
      break;
  }
  if (!console.json()) {
    console.Note(absl::StrCat(
        name, event.reason.ok() ? "" : ": ",
        event.reason.ok() ? "" : std::string(event.reason.message())));
    return;
  }
  boost::json::object out;
  out["event"] = name;
  if (event.kind == worker::WorkerEvent::Kind::kLoaded) {
    out["memory"] = {{"weights_bytes", event.memory.weights_bytes},
                     {"kv_bytes", event.memory.kv_bytes},
                     {"scratch_bytes", event.memory.scratch_bytes}};
  }
  if (event.epoch != 0) {
    out["epoch"] = event.epoch;
  }
  if (!event.reason.ok()) {
    out["error"] = ErrorJson(event.reason);
  }
  console.AnnounceJson(out);
}

absl::StatusOr<std::unique_ptr<worker::NodeService>>
StageWorkerCommand::StartService(Console& console,
                                 const ComputeOptions& compute,
                                 const worker::WorkerServer& server,
                                 const std::string& name) const {
  if (control_.empty()) {
    return nullptr;
  }
  const NodeIdentity identity = {
      .name = name,
      .isa = compute.isa,
      .num_threads = compute.num_threads,
      .memory_bytes = compute.memory_bytes.value_or(0)};
  worker::NodeService::Options options;
  MILLRACE_ASSIGN_OR_RETURN(options.listen,
                            ParseEndpointOption(kControlOption, control_));
  options.insecure = insecure_;
  options.describe = [identity, &server] {
    control::NodeDescription node = DescribeNode(identity);
    node.load_key = server.load_key();
    node.data_address = server.data_endpoint();
    return node;
  };
  options.find_model = [models = models_](const std::string& model) {
    return DescribeModel(models, model);
  };
  options.measure = [identity,
                     &server]() -> absl::StatusOr<control::NodeRates> {
    if (!server.load_key().empty()) {
      return MakeError(absl::StatusCode::kFailedPrecondition, identity.name,
                       "holds a stage, beside which it does not measure itself",
                       "measure it before the coordinator starts");
    }
    return MeasureRates(identity);
  };
  absl::StatusOr<std::unique_ptr<worker::NodeService>> service =
      worker::NodeService::Start(std::move(options));
  if (!service.ok()) {
    return WithObject(service.status(), kControlOption);
  }
  const std::string address = transport::FormatEndpoint((*service)->endpoint());
  if (console.json()) {
    console.AnnounceJson(
        boost::json::object{{"event", "listening"}, {"control", address}});
  } else {
    console.Note(absl::StrCat("check and probe reach it at ", address));
  }
  return service;
}

absl::Status StageWorkerCommand::Run(Console& console) {
  ComputeFlags flags;
  flags.kernels = kernels_;
  flags.threads = threads_;
  flags.memory = memory_;
  MILLRACE_ASSIGN_OR_RETURN(const ComputeOptions compute,
                            Validate(flags, true));
  const kernels::KernelTable kernels = kernels::BuildKernelTable(compute.isa);
  worker::CheckpointStageOptions stage;
  stage.models_dir = models_;
  stage.memory_bytes = compute.memory_bytes.value_or(0);
  // 0: all cores.
  stage.num_threads = static_cast<int>(threads_.value_or(0));
  stage.kernels = &kernels;
  const std::unique_ptr<worker::StageFactory> factory =
      worker::MakeCheckpointStageFactory(stage);
  worker::WorkerServer::Options options;
  MILLRACE_ASSIGN_OR_RETURN(options.coordinator,
                            ParseEndpointOption("--coordinator", coordinator_));
  MILLRACE_ASSIGN_OR_RETURN(options.listen,
                            ParseEndpointOption("--listen", listen_));
  const std::string name = name_.empty() ? HostName("worker") : name_;
  options.name = name;
  options.version = Version();
  options.isa = kernels::IsaName(compute.isa);
  options.kernels = KernelUses(kernels);
  options.memory_bytes = stage.memory_bytes;
  options.insecure = insecure_;
  options.factory = factory.get();
  options.on_event = [&](const worker::WorkerEvent& event) {
    Report(console, event);
  };
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<worker::WorkerServer> server,
                            worker::WorkerServer::Create(std::move(options)));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<worker::NodeService> service,
                            StartService(console, compute, *server, name));
  std::atomic<bool> ended{false};
  std::thread watcher([&] {
    while (!ended.load(std::memory_order_relaxed)) {
      if (AwaitInterrupt(absl::Milliseconds(500))) {
        server->Stop();
        return;
      }
    }
  });
  server->Run();
  ended.store(true, std::memory_order_relaxed);
  watcher.join();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeStageWorkerCommand() {
  return std::make_unique<StageWorkerCommand>();
}

}  // namespace millrace::cli
