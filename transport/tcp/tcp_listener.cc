#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "transport/tcp/tcp_channel.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::transport {
namespace {

// A dialer writes its hello at once; a second covers a loaded machine.
constexpr absl::Duration kHelloTimeout = absl::Seconds(2);

// Connections whose hello is awaited side by side. When more come, the oldest
// is dropped: it has had the longest time.
constexpr size_t kPendingMax = 16;

void Answer(int socket, HelloKind kind, HelloRefusal refusal,
            TcpLinkOptions link) {
  if (kind == HelloKind::kRefuse) {
    link.token = {};  // nobody learns it here
  }
  const HelloBytes bytes = EncodeHello({kind, refusal, link});
  // A new connection takes 64 bytes at once; else the dialer sees the end.
  [[maybe_unused]] const ssize_t sent =
      send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Listen(
    const Endpoint& endpoint) {
  MILLRACE_ASSIGN_OR_RETURN(Descriptor socket, ListenSocket(endpoint));
  MILLRACE_ASSIGN_OR_RETURN(Endpoint local, LocalEndpoint(socket.get()));
  return std::unique_ptr<TcpListener>(
      new TcpListener(std::move(socket), std::move(local)));
}

absl::StatusOr<std::shared_ptr<Channel>> TcpListener::Accept(
    const TcpLinkOptions& link, absl::Duration timeout,
    const std::atomic<bool>* cancelled) {
  const WaitLimit limit = {clock_.Monotonic() + timeout, cancelled};
  for (;;) {
    for (Pending& pending : pending_) {
      if (std::shared_ptr<Channel> channel = Advance(pending, link)) {
        pending_.clear();
        return channel;
      }
    }
    std::erase_if(pending_, [](const Pending& p) { return !p.socket.valid(); });
    MILLRACE_RETURN_IF_ERROR(AwaitEvents(limit));
    TakeConnections();
  }
}

absl::Status TcpListener::AwaitEvents(const WaitLimit& limit) {
  std::array<pollfd, kPendingMax + 2> items;
  size_t count = 0;
  items[count++] = {closed_.descriptor(), POLLIN, 0};
  items[count++] = {socket_.get(), POLLIN, 0};
  WaitLimit first = limit;
  for (const Pending& pending : pending_) {
    items[count++] = {pending.socket.get(), POLLIN, 0};
    first.deadline = std::min(first.deadline, pending.deadline);
  }
  const absl::Duration now = clock_.Monotonic();
  const std::string name = FormatEndpoint(endpoint_);
  MILLRACE_RETURN_IF_ERROR(WithObject(
      limit.Check(now), absl::StrCat(name, ": accepting the upstream stage")));
  poll(items.data(), count, first.PollTimeout(now));
  if (items[0].revents != 0) {
    return MakeError(absl::StatusCode::kCancelled, name,
                     "the listener is closed");
  }
  return absl::OkStatus();
}

void TcpListener::TakeConnections() {
  for (;;) {
    Descriptor socket(
        accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      return;
    }
    if (pending_.size() == kPendingMax) {
      pending_.erase(pending_.begin());
    }
    Pending& pending = pending_.emplace_back();
    pending.socket = std::move(socket);
    pending.deadline = clock_.Monotonic() + kHelloTimeout;
  }
}

std::shared_ptr<Channel> TcpListener::Advance(Pending& pending,
                                              const TcpLinkOptions& link) {
  const ssize_t got = recv(pending.socket.get(), &pending.bytes[pending.filled],
                           pending.bytes.size() - pending.filled, 0);
  if (got > 0) {
    pending.filled += static_cast<size_t>(got);
    if (pending.filled == pending.bytes.size()) {
      return Judge(pending, link);
    }
    return nullptr;
  }
  const bool waits = got < 0 && (errno == EAGAIN || errno == EINTR);
  if (!waits || clock_.Monotonic() >= pending.deadline) {
    pending.socket.Reset();
  }
  return nullptr;
}

std::shared_ptr<Channel> TcpListener::Judge(Pending& pending,
                                            const TcpLinkOptions& link) {
  Descriptor socket = std::move(pending.socket);
  const std::string peer = PeerName(socket.get());
  Hello hello;
  const absl::Status decoded = DecodeHello(pending.bytes, hello);
  HelloRefusal refusal = HelloRefusal::kVersion;
  if (decoded.ok()) {
    refusal = JudgeHello(hello, link);
  } else if (absl::IsDataLoss(decoded)) {
    MILLRACE_LOG(Warning) << "dropped a connection from " << peer << ": "
                          << decoded.message();
    return nullptr;
  }
  if (refusal != HelloRefusal::kNone) {
    MILLRACE_LOG(Warning) << "refused a link from " << peer << ", reason "
                          << static_cast<uint32_t>(refusal) << ", epoch "
                          << link.epoch;
    Answer(socket.get(), HelloKind::kRefuse, refusal, link);
    return nullptr;
  }
  TuneSocket(socket.get());
  Answer(socket.get(), HelloKind::kAccept, HelloRefusal::kNone, link);
  return std::make_shared<TcpChannel>(
      std::move(socket),
      TcpChannel::Options{.frame_bytes_max = link.frame_bytes_max,
                          .window = link.window,
                          .peer_window = hello.link.window});
}

}  // namespace millrace::transport
