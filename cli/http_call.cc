#include "cli/http_call.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "transport/tcp/tcp_socket.h"

namespace millrace::cli {
namespace {

constexpr size_t kAnswerBytesMax = size_t{16} << 20;

absl::Status SendAll(int socket, absl::string_view bytes,
                     const transport::WaitLimit& limit,
                     const std::string& peer) {
  while (!bytes.empty()) {
    MILLRACE_RETURN_IF_ERROR(transport::AwaitSocket(socket, POLLOUT, limit));
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      return transport::SocketError("send", peer, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(0, sent)));
  }
  return absl::OkStatus();
}

// Until the server ends the connection.
absl::StatusOr<std::string> ReceiveAll(int socket,
                                       const transport::WaitLimit& limit,
                                       const std::string& peer) {
  std::string text;
  char piece[4096];
  for (;;) {
    MILLRACE_RETURN_IF_ERROR(transport::AwaitSocket(socket, POLLIN, limit));
    const ssize_t got = recv(socket, piece, sizeof(piece), 0);
    if (got == 0) {
      return text;
    }
    if (got < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        return transport::SocketError("receive", peer, errno);
      }
      continue;
    }
    text.append(piece, static_cast<size_t>(got));
    if (text.size() > kAnswerBytesMax) {
      return MakeError(absl::StatusCode::kUnavailable, peer,
                       "answers with more than 16 MiB");
    }
  }
}

}  // namespace

absl::StatusOr<std::string> HttpCall(const HttpRequest& request,
                                     const std::atomic<bool>& cancelled) {
  const std::string peer = transport::FormatEndpoint(request.server);
  const transport::WaitLimit limit = {
      SystemClock().Monotonic() + request.timeout, &cancelled};
  MILLRACE_ASSIGN_OR_RETURN(const transport::Descriptor socket,
                            transport::ConnectSocket(request.server, limit));
  MILLRACE_RETURN_IF_ERROR(WithObject(
      SendAll(socket.get(),
              absl::StrCat(request.method, " ", request.path,
                           " HTTP/1.1\r\nHost: ", peer,
                           "\r\nConnection: close\r\nContent-Type: "
                           "application/json\r\nContent-Length: ",
                           request.body.size(), "\r\n\r\n", request.body),
              limit, peer),
      peer));
  absl::StatusOr<std::string> received = ReceiveAll(socket.get(), limit, peer);
  if (!received.ok()) {
    return WithObject(received.status(), peer);
  }
  const size_t end = received->find("\r\n\r\n");
  if (end == std::string::npos ||
      !absl::StartsWith(*received, "HTTP/1.1 200 ")) {
    return MakeError(
        absl::StatusCode::kUnavailable, peer,
        absl::StrCat("answers ", request.path, " with ",
                     Printable(received->substr(0, received->find("\r\n")))),
        "is it the URL of a coordinator that is ready?");
  }
  return received->substr(end + 4);
}

absl::StatusOr<transport::Endpoint> ParseHttpUrl(absl::string_view option,
                                                 absl::string_view url) {
  absl::string_view rest = url;
  if (!absl::ConsumePrefix(&rest, "http://")) {
    return UsageError(option,
                      absl::StrCat("'", Printable(url), "' is no http:// URL"),
                      "give http://HOST:PORT, as the server says it");
  }
  absl::ConsumeSuffix(&rest, "/");
  absl::StatusOr<transport::Endpoint> endpoint = transport::ParseEndpoint(rest);
  if (!endpoint.ok()) {
    return UsageError(option, endpoint.status().message(),
                      "give http://HOST:PORT, as the server says it");
  }
  return endpoint;
}

}  // namespace millrace::cli
