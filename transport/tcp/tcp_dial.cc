#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "transport/tcp/tcp_channel.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::transport {
namespace {

// Reads the answer and not a byte more: what follows belongs to the channel.
absl::Status ReadHello(int socket, const std::string& peer,
                       const WaitLimit& limit, HelloBytes& bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    MILLRACE_RETURN_IF_ERROR(
        WithObject(AwaitSocket(socket, POLLIN, limit), peer));
    const ssize_t got = recv(socket, &bytes[filled], bytes.size() - filled, 0);
    if (got == 0) {
      return MakeError(absl::StatusCode::kUnavailable, peer,
                       "the peer ended the connection before it answered");
    }
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else if (errno != EAGAIN && errno != EINTR) {
      return SocketError("receive", peer, errno);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Channel>> DialTcp(
    const Endpoint& endpoint, const TcpLinkOptions& link,
    absl::Duration timeout, const std::atomic<bool>* cancelled) {
  const WaitLimit limit = {SystemClock().Monotonic() + timeout, cancelled};
  const std::string peer = FormatEndpoint(endpoint);
  MILLRACE_ASSIGN_OR_RETURN(Descriptor socket, ConnectSocket(endpoint, limit));
  TuneSocket(socket.get());
  const HelloBytes hello = EncodeHello({HelloKind::kDial, {}, link});
  // A new connection takes 64 bytes at once.
  if (send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(hello.size())) {
    return SocketError("send", peer, errno);
  }
  HelloBytes bytes;
  MILLRACE_RETURN_IF_ERROR(ReadHello(socket.get(), peer, limit, bytes));
  Hello answer;
  MILLRACE_RETURN_IF_ERROR(WithObject(DecodeHello(bytes, answer), peer));
  MILLRACE_RETURN_IF_ERROR(WithObject(CheckAnswer(answer, link), peer));
  return std::make_shared<TcpChannel>(
      std::move(socket),
      TcpChannel::Options{.frame_bytes_max = link.frame_bytes_max,
                          .window = link.window,
                          .peer_window = answer.link.window});
}

}  // namespace millrace::transport
