#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "transport/channel.h"
#include "transport/endpoint.h"
#include "transport/tcp/tcp_handshake.h"
#include "transport/tcp/tcp_socket.h"

namespace millrace::transport {

// Waits for dialers and lets in the one that shows the right token. Accept from
// one thread at a time; Close from any thread. Dialers that come while nobody
// accepts wait in the backlog, at most for their own deadline.
class TcpListener {
 public:
  // Port 0 takes any free one. kUnavailable when the port is in use.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Listen(
      const Endpoint& endpoint);

  // Where it really listens.
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

  // The channel whose dialer agrees with `link`; others are told why not and
  // dropped. A silent dialer keeps nobody out: hellos are read side by side,
  // each within two seconds. kDeadlineExceeded; kCancelled after Close and soon
  // after `cancelled` (nullable, outlives the call) becomes true.
  absl::StatusOr<std::shared_ptr<Channel>> Accept(
      const TcpLinkOptions& link, absl::Duration timeout,
      const std::atomic<bool>* cancelled = nullptr);
  // Ends a running and every later Accept.
  void Close() { closed_.Set(); }

 private:
  // A connection whose hello is not complete yet.
  struct Pending {
    Descriptor socket;
    HelloBytes bytes = {};
    size_t filled = 0;
    absl::Duration deadline;
  };

  TcpListener(Descriptor socket, Endpoint endpoint)
      : socket_(std::move(socket)), endpoint_(std::move(endpoint)) {}

  absl::Status AwaitEvents(const WaitLimit& limit);
  void TakeConnections();
  // The channel when this connection is the one; null while it is not. Clears
  // `pending.socket` when it is done with.
  std::shared_ptr<Channel> Advance(Pending& pending,
                                   const TcpLinkOptions& link);
  std::shared_ptr<Channel> Judge(Pending& pending, const TcpLinkOptions& link);

  const SystemClock clock_;
  const Descriptor socket_;
  const Endpoint endpoint_;
  WakeEvent closed_;              // set once and never cleared
  std::vector<Pending> pending_;  // at most kPendingMax, oldest first
};

// Connects, shows the token and waits for the answer, all within `timeout`.
// kUnavailable: nobody there; kAborted: the peer holds another plan;
// kFailedPrecondition: another version; kDeadlineExceeded; kCancelled.
absl::StatusOr<std::shared_ptr<Channel>> DialTcp(
    const Endpoint& endpoint, const TcpLinkOptions& link,
    absl::Duration timeout, const std::atomic<bool>* cancelled = nullptr);

}  // namespace millrace::transport
