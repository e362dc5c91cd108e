#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/engine/engine.h"
#include "coordinator/membership/membership_core.h"
#include "transport/endpoint.h"
#include "transport/frame_link.h"

namespace millrace::coordinator {

// Told what happens to the cluster, on the cluster's thread, in order; must
// return soon and not call Stop.
class ClusterListener {
 public:
  virtual ~ClusterListener() = default;
  // All stages run `epoch` and are empty.
  virtual void OnReady(uint64_t epoch,
                       std::unique_ptr<transport::FrameSender> sender,
                       std::unique_ptr<transport::FrameReceiver> receiver) = 0;
  // The epoch has ended; comes after every OnReady before the next. `reason`
  // names the worker where one is to blame.
  virtual void OnDown(uint64_t epoch, const absl::Status& reason) = 0;

  virtual void OnWorkerJoined(const std::string& worker) { (void)worker; }
  virtual void OnWorkerLost(const std::string& worker,
                            const absl::Status& reason) {
    (void)worker, (void)reason;
  }
  virtual void OnPlanned(const ClusterPlan& plan) { (void)plan; }
  // The model does not fit these workers; tried again when others come.
  virtual void OnPlanFailed(const absl::Status& reason) { (void)reason; }
  virtual void OnLoadProgress(const std::string& worker, int64_t bytes_done,
                              int64_t bytes_total) {
    (void)worker, (void)bytes_done, (void)bytes_total;
  }
  virtual void OnStageLoaded(const std::string& worker,
                             const control::Loaded& loaded) {
    (void)worker, (void)loaded;
  }
  // A worker cannot load its stage; tried again after a while.
  virtual void OnStageFailed(const std::string& worker,
                             const absl::Status& reason) {
    (void)worker, (void)reason;
  }
};

// The workers of one model: lets them in, has their stages loaded, links them
// and brings the pipeline back after a loss. Drives a MembershipCore on its own
// thread; any thread may call.
class Cluster {
 public:
  struct Options {
    transport::Endpoint control;  // where workers dial; port 0: any
    transport::Endpoint data;     // where the last stage dials; port 0: any
    bool insecure = false;        // lets either be off loopback
    bool checksum = true;         // of frames
    MembershipOptions membership;
    Planner planner;
    ClusterListener* listener = nullptr;  // outlives the cluster
  };
  // UsageError: off loopback without `insecure`; kUnavailable: an address is in
  // use.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(Options options);
  virtual ~Cluster() = default;

  // Where workers dial.
  [[nodiscard]] virtual const transport::Endpoint& control_endpoint() const = 0;

  // The engine saw its link of `epoch` break.
  virtual void LinkLost(uint64_t epoch, const absl::Status& reason) = 0;
  // Which worker's loss is behind what a link reported; waits up to half a
  // second to learn it. Not from the listener.
  virtual absl::Status ExplainLoss(const absl::Status& observed) = 0;
  // In the order of the route; empty before there is a plan. The counters are
  // as of the last heartbeat.
  [[nodiscard]] virtual std::vector<StageSnapshot> Stages() const = 0;
  // For people: what the cluster waits for; empty when it is ready.
  [[nodiscard]] virtual std::string WaitsFor() const = 0;

  // Tells the workers that no more work comes.
  virtual void Drain() = 0;
  // Takes the pipeline down (OnDown comes if it was up) and ends all sessions.
  // `shut_down_workers`: their processes end too; else they keep their weights
  // and dial again. Idempotent.
  virtual void Stop(bool shut_down_workers) = 0;
};

}  // namespace millrace::coordinator
