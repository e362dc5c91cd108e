#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "coordinator/membership/control_server.h"
#include "millrace/control/v1/control.grpc.pb.h"

namespace millrace::coordinator {

// One stream of one worker. gRPC calls the On* methods, one after another for
// each kind; Send and End come from any thread. It keeps itself alive until
// OnDone, since gRPC holds a plain pointer until then.
class ControlSession final
    : public grpc::ServerBidiReactor<control::v1::WorkerMessage,
                                     control::v1::CoordinatorMessage> {
 public:
  // `options` and `on_done` outlive it; on_done(id) is its last act.
  ControlSession(SessionId id, grpc::CallbackServerContext* context,
                 const ControlServer::Options& options,
                 std::function<void(SessionId)> on_done);

  // Begins reading. `self` is held until OnDone.
  void Begin(std::shared_ptr<ControlSession> self) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(const control::CoordinatorMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether nothing has been received and it is older than `age`.
  bool SilentFor(absl::Duration age) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void EndLocked(const absl::Status& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts what comes next: the write in front, or the end.
  void StepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionId id_;
  const std::string peer_host_;
  const ControlServer::Options& options_;
  const std::function<void(SessionId)> on_done_;
  const absl::Duration begun_at_;
  control::v1::WorkerMessage incoming_;  // gRPC's until OnReadDone

  Mutex mutex_;
  std::deque<control::v1::CoordinatorMessage> outgoing_ ABSL_GUARDED_BY(mutex_);
  control::v1::CoordinatorMessage in_flight_;  // gRPC's while writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool heard_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ControlSession> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::coordinator
