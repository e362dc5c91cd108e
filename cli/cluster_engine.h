#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "cli/cluster_plan.h"
#include "cli/compute_options.h"
#include "cli/console.h"
#include "coordinator/engine/pipeline_engine.h"
#include "coordinator/membership/cluster.h"
#include "model/checkpoint/checkpoint.h"

namespace millrace::cli {

// An engine over workers in other processes: the cluster brings the pipeline
// up and back, the engine runs requests on it. Before the first plan it is not
// ready and refuses. Any thread.
class ClusterEngine final : public coordinator::Engine,
                            private coordinator::ClusterListener {
 public:
  struct Options {
    const model::Checkpoint* checkpoint = nullptr;  // outlives the engine
    std::string model_path;                         // as workers are told
    ComputeOptions compute;                         // fitted to the model
    bool threads_given = false;
    int num_workers = 1;
    PlannedRoute planned;         // from a plan file; may be empty
    transport::Endpoint control;  // where workers dial
    transport::Endpoint data;     // where the last stage dials
    bool insecure = false;
    Console* console = nullptr;  // outlives the engine
  };
  static absl::StatusOr<std::unique_ptr<ClusterEngine>> Start(Options options);
  ~ClusterEngine() override;

  // Waits until the pipeline is ready; false when `timeout` passed first. An
  // error when the model does not fit the workers that are there.
  absl::StatusOr<bool> AwaitReady(absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);

  [[nodiscard]] const transport::Endpoint& control_endpoint() const {
    return cluster_->control_endpoint();
  }
  // Ends all sessions; with `shut_down_workers` their processes too.
  void Stop(bool shut_down_workers);

  absl::StatusOr<coordinator::RequestId> Submit(
      coordinator::GenerateRequest request,
      std::shared_ptr<coordinator::RequestObserver> observer) override;
  void Cancel(coordinator::RequestId id) override;
  [[nodiscard]] coordinator::EngineSnapshot Snapshot() const override;
  void Drain(absl::Duration deadline) override;

 private:
  explicit ClusterEngine(Options options) : options_(std::move(options)) {}

  absl::StatusOr<coordinator::ClusterPlan> Plan(
      const std::vector<control::Register>& workers);
  [[nodiscard]] std::shared_ptr<coordinator::PipelineEngine> engine() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReady(uint64_t epoch, std::unique_ptr<transport::FrameSender> sender,
               std::unique_ptr<transport::FrameReceiver> receiver) override;
  void OnDown(uint64_t epoch, const absl::Status& reason) override;
  void OnWorkerJoined(const std::string& worker) override;
  void OnWorkerLost(const std::string& worker,
                    const absl::Status& reason) override;
  void OnPlanFailed(const absl::Status& reason) override;
  void OnLoadProgress(const std::string& worker, int64_t bytes_done,
                      int64_t bytes_total) override;
  void OnStageFailed(const std::string& worker,
                     const absl::Status& reason) override;

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<coordinator::PipelineEngine> engine_
      ABSL_GUARDED_BY(mutex_);  // null before the first plan
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<coordinator::Cluster> cluster_;  // last: calls the above
};

}  // namespace millrace::cli
