#include "transport/tcp/tcp_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace::transport {
namespace {

// A cut cable is noticed after at most 3 + 3 * 1 s of silence, or 6 s after
// data went out unanswered: the same few seconds as the control plane's
// heartbeats. Half of it breaks links on a busy switch; double delays recovery.
constexpr int kKeepIdleSeconds = 3;
constexpr int kKeepIntervalSeconds = 1;
constexpr int kKeepCount = 3;
constexpr unsigned kUserTimeoutMilliseconds = 6000;

constexpr int kBacklog = 64;

// How soon a wait notices that it is cancelled. Only connects and handshakes
// wait this way, for seconds.
constexpr absl::Duration kCancelInterval = absl::Milliseconds(50);

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<AddressList> Resolve(const Endpoint& endpoint, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(endpoint.host.c_str(), absl::StrCat(endpoint.port).c_str(),
                  &hints, &found);
  if (error != 0) {
    return MakeError(absl::StatusCode::kUnavailable, FormatEndpoint(endpoint),
                     absl::StrCat("cannot resolve: ", gai_strerror(error)));
  }
  return AddressList(found, &freeaddrinfo);
}

absl::StatusOr<Endpoint> ToEndpoint(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    return Endpoint{text, ntohs(v4->sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    return Endpoint{text, ntohs(v6->sin6_port)};
  }
  return absl::InternalError("a socket of an unknown family");
}

absl::StatusOr<Descriptor> ConnectAddress(const addrinfo& address,
                                          const std::string& peer,
                                          const WaitLimit& limit) {
  Descriptor socket(::socket(address.ai_family,
                             SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    return SocketError("socket", peer, errno);
  }
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return socket;
  }
  if (errno != EINPROGRESS) {
    return SocketError("connect", peer, errno);
  }
  MILLRACE_RETURN_IF_ERROR(
      WithObject(AwaitSocket(socket.get(), POLLOUT, limit), peer));
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    return SocketError("connect", peer, error);
  }
  return socket;
}

}  // namespace

void Descriptor::Reset() {
  if (value_ >= 0) {
    close(value_);
    value_ = -1;
  }
}

WakeEvent::WakeEvent() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  MILLRACE_CHECK(event_.valid());
}

void WakeEvent::Set() {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then it is set.
  [[maybe_unused]] const ssize_t written =
      write(event_.get(), &one, sizeof(one));
}

void WakeEvent::Clear() {
  uint64_t count = 0;
  // Fails only when it was not set.
  [[maybe_unused]] const ssize_t taken =
      read(event_.get(), &count, sizeof(count));
}

absl::Status SocketError(absl::string_view operation, absl::string_view peer,
                         int error) {
  return MakeError(absl::StatusCode::kUnavailable, peer,
                   absl::StrCat(operation, ": ", ErrnoText(error)));
}

absl::StatusOr<Descriptor> ListenSocket(const Endpoint& endpoint) {
  MILLRACE_ASSIGN_OR_RETURN(const AddressList found,
                            Resolve(endpoint, AI_PASSIVE));
  const std::string name = FormatEndpoint(endpoint);
  absl::Status last = SocketError("listen", name, EADDRNOTAVAIL);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    Descriptor socket(
        ::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int one = 1;
    if (socket.valid() &&
        setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ==
            0 &&
        bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 &&
        listen(socket.get(), kBacklog) == 0) {
      return socket;
    }
    last = SocketError("listen", name, errno);
  }
  return last;
}

absl::StatusOr<Endpoint> LocalEndpoint(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return SocketError("getsockname", "socket", errno);
  }
  return ToEndpoint(address);
}

absl::StatusOr<Descriptor> ConnectSocket(const Endpoint& endpoint,
                                         const WaitLimit& limit) {
  MILLRACE_ASSIGN_OR_RETURN(const AddressList found, Resolve(endpoint, 0));
  const std::string name = FormatEndpoint(endpoint);
  absl::Status last = SocketError("connect", name, EADDRNOTAVAIL);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    absl::StatusOr<Descriptor> socket = ConnectAddress(*at, name, limit);
    if (socket.ok()) {
      return socket;
    }
    last = std::move(socket).status();
  }
  return last;
}

void TuneSocket(int socket) {
  const auto set = [socket](int level, int option, auto value) {
    // A refusal costs latency or detection time, never correctness.
    setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
}

std::string PeerName(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "peer";
  }
  const absl::StatusOr<Endpoint> endpoint = ToEndpoint(address);
  return endpoint.ok() ? FormatEndpoint(*endpoint) : "peer";
}

absl::Status WaitLimit::Check(absl::Duration now) const {
  if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
    return absl::CancelledError("no longer wanted");
  }
  return now < deadline ? absl::OkStatus()
                        : absl::DeadlineExceededError("no answer in time");
}

int WaitLimit::PollTimeout(absl::Duration now) const {
  const absl::Duration most =
      cancelled == nullptr ? absl::Hours(1) : kCancelInterval;
  const absl::Duration left =
      std::clamp(deadline - now, absl::ZeroDuration(), most);
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

absl::Status AwaitSocket(int socket, short events, const WaitLimit& limit) {
  const SystemClock clock;
  for (;;) {
    pollfd item = {socket, events, 0};
    const int ready = poll(&item, 1, limit.PollTimeout(clock.Monotonic()));
    if (ready > 0) {
      return absl::OkStatus();
    }
    if (ready < 0 && errno != EINTR) {
      return SocketError("poll", "socket", errno);
    }
    MILLRACE_RETURN_IF_ERROR(limit.Check(clock.Monotonic()));
  }
}

}  // namespace millrace::transport
