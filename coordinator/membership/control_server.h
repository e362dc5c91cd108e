#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/membership/membership_core.h"
#include "proto/control_messages.h"
#include "transport/endpoint.h"

namespace millrace::coordinator {

// The control plane's gRPC endpoint: one session per stream of a worker. Knows
// nothing of workers but their streams. Any thread may call it; events come on
// gRPC's threads and must return soon.
class ControlServer {
 public:
  struct Options {
    transport::Endpoint listen;  // port 0: any free one
    int sessions_max = 256;      // more are refused
    // Messages that a worker may leave unread before its session is ended.
    size_t queue_max = 64;
    // `peer_host`: the address the stream comes from.
    std::function<void(SessionId session, control::WorkerMessage message,
                       const std::string& peer_host)>
        on_message;
    // Exactly once per session that was let in, last.
    std::function<void(SessionId session, const absl::Status& reason)> on_end;
  };
  // kUnavailable: the address is in use or not ours.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Start(Options options);
  virtual ~ControlServer() = default;

  // Where it really listens.
  [[nodiscard]] virtual const transport::Endpoint& endpoint() const = 0;
  // Queues a message. Ignored for sessions that have ended.
  virtual void Send(SessionId session,
                    const control::CoordinatorMessage& message) = 0;
  // Ends a session once what was queued is written; the worker is told why.
  virtual void End(SessionId session, const absl::Status& reason) = 0;
  // Ends sessions that have sent nothing for `age` since they came.
  virtual void EndSilent(absl::Duration age) = 0;
  // Ends all sessions and waits for their last events. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace millrace::coordinator
