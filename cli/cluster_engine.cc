#include "cli/cluster_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"

namespace millrace::cli {

absl::StatusOr<std::unique_ptr<ClusterEngine>> ClusterEngine::Start(
    Options options) {
  std::unique_ptr<ClusterEngine> engine(new ClusterEngine(std::move(options)));
  const Options& own = engine->options_;
  coordinator::Cluster::Options cluster;
  cluster.control = own.control;
  cluster.data = own.data;
  cluster.insecure = own.insecure;
  cluster.membership.num_workers = own.num_workers;
  cluster.membership.model_path = own.model_path;
  cluster.membership.model_digest = own.checkpoint->spec().digest;
  cluster.planner =
      [raw = engine.get()](const std::vector<control::Register>& workers) {
        return raw->Plan(workers);
      };
  cluster.listener = engine.get();
  MILLRACE_ASSIGN_OR_RETURN(engine->cluster_,
                            coordinator::Cluster::Start(std::move(cluster)));
  return engine;
}

ClusterEngine::~ClusterEngine() { Stop(false); }

void ClusterEngine::Stop(bool shut_down_workers) {
  if (cluster_ != nullptr) {
    cluster_->Stop(shut_down_workers);
  }
}

std::shared_ptr<coordinator::PipelineEngine> ClusterEngine::engine() const {
  MutexLock lock(mutex_);
  return engine_;
}

// Cluster's thread. Every new plan of a cluster keeps the shape of the first:
// seats are fixed once planned, so that one engine lasts.
absl::StatusOr<coordinator::ClusterPlan> ClusterEngine::Plan(
    const std::vector<control::Register>& workers) {
  const model::ModelSpec& spec = options_.checkpoint->spec();
  MILLRACE_ASSIGN_OR_RETURN(
      const ClusterLayout layout,
      LayOut(spec, options_.compute, workers, options_.planned));
  coordinator::PipelineEngine::Options engine;
  engine.core =
      MakeCoreConfig(spec, options_.compute, layout.pipeline, layout.workers);
  engine.stages = [this] { return cluster_->Stages(); };
  engine.explain_loss = [this](const absl::Status& observed) {
    return cluster_->ExplainLoss(observed);
  };
  engine.on_link_lost = [this](uint64_t epoch, const absl::Status& reason) {
    cluster_->LinkLost(epoch, reason);
  };
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<coordinator::PipelineEngine> made,
      coordinator::PipelineEngine::Create(std::move(engine)));
  {
    MutexLock lock(mutex_);
    engine_ = std::move(made);
  }
  return ToClusterPlan(spec, layout, options_.threads_given);
}

absl::StatusOr<bool> ClusterEngine::AwaitReady(absl::Duration timeout) {
  MutexLock lock(mutex_);
  if (!ready_ && failure_.ok()) {
    changed_.WaitFor(mutex_, timeout);
  }
  if (!ready_ && !failure_.ok()) {
    return failure_;
  }
  return ready_;
}

void ClusterEngine::OnReady(
    uint64_t epoch, std::unique_ptr<transport::FrameSender> sender,
    std::unique_ptr<transport::FrameReceiver> receiver) {
  const absl::Status status =
      engine()->Connect(epoch, std::move(sender), std::move(receiver));
  {
    MutexLock lock(mutex_);
    ready_ = status.ok();
    failure_ = absl::OkStatus();
  }
  changed_.NotifyAll();
}

void ClusterEngine::OnDown(uint64_t, const absl::Status& reason) {
  {
    MutexLock lock(mutex_);
    ready_ = false;
  }
  engine()->Disconnect(reason);
}

void ClusterEngine::OnWorkerJoined(const std::string& worker) {
  options_.console->Note(absl::StrCat("worker ", worker, " has joined"));
}

void ClusterEngine::OnWorkerLost(const std::string& worker,
                                 const absl::Status& reason) {
  options_.console->Note(
      absl::StrCat("worker ", worker, " is lost: ", reason.message()));
}

void ClusterEngine::OnPlanFailed(const absl::Status& reason) {
  {
    MutexLock lock(mutex_);
    failure_ = reason;
  }
  changed_.NotifyAll();
}

void ClusterEngine::OnLoadProgress(const std::string& worker,
                                   int64_t bytes_done, int64_t bytes_total) {
  options_.console->Progress(
      absl::StrFormat("%s: loading %d%% of %s", worker,
                      bytes_done * 100 / std::max<int64_t>(1, bytes_total),
                      HumanSize(bytes_total)));
}

void ClusterEngine::OnStageFailed(const std::string& worker,
                                  const absl::Status& reason) {
  options_.console->Note(absl::StrCat(
      "worker ", worker, " cannot load its stage: ", reason.message()));
  if (KindOf(reason) == ErrorKind::kInput ||
      KindOf(reason) == ErrorKind::kAnswerNo) {
    {
      MutexLock lock(mutex_);
      failure_ = WithObject(reason, worker);
    }
    changed_.NotifyAll();
  }
}

absl::StatusOr<coordinator::RequestId> ClusterEngine::Submit(
    coordinator::GenerateRequest request,
    std::shared_ptr<coordinator::RequestObserver> observer) {
  const std::shared_ptr<coordinator::PipelineEngine> engine = this->engine();
  if (engine == nullptr) {
    return MakeError(absl::StatusCode::kUnavailable, "cluster",
                     absl::StrCat("is not ready: ", cluster_->WaitsFor()));
  }
  return engine->Submit(std::move(request), std::move(observer));
}

void ClusterEngine::Cancel(coordinator::RequestId id) {
  if (const auto engine = this->engine(); engine != nullptr) {
    engine->Cancel(id);
  }
}

coordinator::EngineSnapshot ClusterEngine::Snapshot() const {
  coordinator::EngineSnapshot snapshot;
  if (const auto engine = this->engine(); engine != nullptr) {
    snapshot = engine->Snapshot();
  }
  if (!snapshot.ready) {
    const std::string waits = cluster_->WaitsFor();
    snapshot.not_ready_reason = waits.empty() ? "starting" : waits;
  }
  return snapshot;
}

void ClusterEngine::Drain(absl::Duration deadline) {
  cluster_->Drain();
  if (const auto engine = this->engine(); engine != nullptr) {
    engine->Drain(deadline);
  }
}

}  // namespace millrace::cli
