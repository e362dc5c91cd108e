#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "absl/status/status.h"
#include "base/bounded_queue.h"
#include "base/mutex.h"
#include "proto/control_messages.h"
#include "stage-worker/server/metered_link.h"
#include "stage-worker/server/stage_factory.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::worker {

// Holds the worker's stage and carries out the coordinator's commands on it,
// one after another on its own thread, since loading and linking take long.
// Weights stay loaded until another stage is asked for. Any thread may call.
class StageHost {
 public:
  struct Options {
    StageFactory* factory = nullptr;             // outlives the host
    transport::TcpListener* listener = nullptr;  // of upstream links; outlives
    bool insecure = false;  // lets the downstream stage be off loopback
    // Stands in for an unspecified host of the downstream address.
    std::string coordinator_host;
    // What the coordinator is told; from the host's and the stage's threads,
    // must return soon.
    std::function<void(control::WorkerMessage)> emit;
  };
  explicit StageHost(Options options);
  // Ends the stage.
  ~StageHost();
  StageHost(const StageHost&) = delete;
  StageHost& operator=(const StageHost&) = delete;

  // A command that makes a running one pointless ends that one early.
  void Load(control::Load load) ABSL_LOCKS_EXCLUDED(mutex_);
  void Activate(control::Activate activate) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends `epoch`, or whichever runs for 0.
  void Deactivate(uint64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the stage that is loaded; empty: none.
  [[nodiscard]] std::string load_key() const ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] control::StageCounters Counters() const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Flag = std::shared_ptr<std::atomic<bool>>;
  struct ActivateCommand {
    control::Activate activate;
    Flag cancelled;
  };
  struct LoadCommand {
    control::Load load;
    Flag cancelled;
  };
  using Command =
      std::variant<LoadCommand, ActivateCommand, control::Deactivate>;
  struct Links {
    std::unique_ptr<transport::FrameReceiver> upstream;
    std::unique_ptr<transport::FrameSender> downstream;
  };

  void Work() noexcept;
  void Run(const LoadCommand& command);
  void Run(const ActivateCommand& command);
  void Run(const control::Deactivate& command);
  absl::Status TryActivate(const ActivateCommand& command);
  [[nodiscard]] absl::StatusOr<Links> Link(
      const ActivateCommand& command) const;
  void StopRunner();
  void SetRunner(std::unique_ptr<StageRunner> runner, const std::string& key)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the flag of a kind of command, ending the one before.
  Flag Renew(Flag& flag) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  BoundedQueue<Command> commands_;

  // Worker thread.
  uint64_t running_epoch_ = 0;
  Flag quiet_;  // of the running epoch: its end is our doing

  mutable Mutex mutex_;
  // Replaced by the worker thread alone.
  std::shared_ptr<StageRunner> runner_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<LinkTotals> totals_ ABSL_GUARDED_BY(mutex_);
  std::string load_key_ ABSL_GUARDED_BY(mutex_);
  std::string wanted_key_ ABSL_GUARDED_BY(mutex_);  // of the last Load
  Flag load_cancelled_ ABSL_GUARDED_BY(mutex_);
  Flag links_cancelled_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: uses what is above
};

}  // namespace millrace::worker
