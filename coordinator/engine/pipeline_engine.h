#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/core/pipeline_core.h"
#include "coordinator/engine/engine.h"
#include "transport/frame_link.h"

namespace millrace::coordinator {

// The engine on real links: drives a PipelineCore, which its mutex guards.
// A loop thread sends frames and calls observers, a receiver thread waits for
// frames of the last stage; both sleep while nothing happens. Any thread may
// call any method but Drain and the destructor, which must not run in an
// observer. Destroying it ends what still runs with kCancelled.
class PipelineEngine final : public Engine {
 public:
  struct Options {
    CoreConfig core;
    // What the stages say of themselves (runner counters, heartbeats), in the
    // order of the route; called from any thread that asks for a snapshot.
    // Null: the ledger's view.
    std::function<std::vector<StageSnapshot>()> stages;
    // Turns what a link reported into the reason that requests are given,
    // naming the stage that is really lost; may wait a moment to learn it.
    // Receiver thread. Null: the reason names the link.
    std::function<absl::Status(const absl::Status& observed)> explain_loss;
    // Told after the requests of a lost link have been failed, so that the
    // owner can dial again. Receiver thread; not for Disconnect. Nullable.
    std::function<void(uint64_t epoch, const absl::Status& reason)>
        on_link_lost;
    const Clock* clock = nullptr;  // outlives the engine; null: the system's
  };
  // kInvalidArgument names the field of `core` that is out of range.
  static absl::StatusOr<std::unique_ptr<PipelineEngine>> Create(
      Options options);

  ~PipelineEngine() override;
  PipelineEngine(const PipelineEngine&) = delete;
  PipelineEngine& operator=(const PipelineEngine&) = delete;

  // All stages run `epoch` and are empty: requests may be admitted. `sender`
  // leads to the first stage and lets at least N frames be under way, so that
  // sending never waits; `receiver` comes from the last one. Replaces a link
  // that still stands, failing its requests. kAborted: not a new epoch. One
  // thread at a time calls Connect.
  absl::Status Connect(uint64_t epoch,
                       std::unique_ptr<transport::FrameSender> sender,
                       std::unique_ptr<transport::FrameReceiver> receiver)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A stage is lost or the pipeline is taken down; `reason` names it. Running
  // requests end with kUnavailable, those in the queue wait for Connect.
  void Disconnect(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<RequestId> Submit(GenerateRequest request,
                                   std::shared_ptr<RequestObserver> observer)
      override ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(RequestId id) override ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] EngineSnapshot Snapshot() const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Drain(absl::Duration deadline) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Shared by the two threads for as long as they use it.
  struct Link {
    uint64_t epoch = 0;
    std::unique_ptr<transport::FrameSender> sender;
    std::unique_ptr<transport::FrameReceiver> receiver;
    bool broken = false;  // guarded by mutex_: nothing is sent any more
  };
  struct Delivery {
    std::shared_ptr<RequestObserver> observer;
    Notice notice;
  };

  explicit PipelineEngine(Options options);

  void Loop() noexcept;
  // Waits until there is something to send or to deliver. False at the end.
  bool AwaitWork() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendFrames() ABSL_LOCKS_EXCLUDED(mutex_);
  void Deliver() ABSL_LOCKS_EXCLUDED(mutex_);
  void CollectLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The link to send frame_ on, null when nothing is to be sent.
  std::shared_ptr<Link> PollFrameLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(Link& link, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Receive() noexcept;
  std::shared_ptr<Link> AwaitLink() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Pump(const std::shared_ptr<Link>& link)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void LinkLost(const std::shared_ptr<Link>& link, const absl::Status& observed)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the link down if it still is `link`, or whichever stands for null.
  bool DropLink(const Link* link, const absl::Status& reason)
      ABSL_LOCKS_EXCLUDED(mutex_);

  [[nodiscard]] absl::Duration Now() const { return clock_->Monotonic(); }

  const Options options_;
  const SystemClock system_clock_;
  const Clock* const clock_;
  const int64_t num_microbatches_;

  mutable Mutex mutex_;
  CondVar work_;       // the loop: the core has something to do
  CondVar link_up_;    // the receiver: there is a new link
  CondVar delivered_;  // Drain: observers were called
  PipelineCore core_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<RequestId, std::shared_ptr<RequestObserver>> observers_
      ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Link> link_ ABSL_GUARDED_BY(mutex_);
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Loop thread.
  transport::Frame frame_;
  std::shared_ptr<Link> frame_link_;  // not null: frame_ waits to be sent
  std::vector<Notice> notices_;
  std::vector<Delivery> deliveries_;

  std::thread loop_;
  std::thread receiver_;
};

}  // namespace millrace::coordinator
