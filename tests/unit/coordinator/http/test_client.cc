#include "tests/unit/coordinator/http/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace millrace::coordinator {
namespace {

constexpr int kWaitSeconds = 20;

std::string FieldOf(absl::string_view head, absl::string_view name) {
  const size_t at = head.find(absl::StrCat("\r\n", name, ": "));
  if (at == absl::string_view::npos) {
    return "";
  }
  const size_t begin = at + 4 + name.size();
  return std::string(head.substr(begin, head.find("\r\n", begin) - begin));
}

}  // namespace

TestClient::TestClient(const std::string& url, int receive_buffer) {
  int port = 0;
  MILLRACE_CHECK(absl::SimpleAtoi(url.substr(url.rfind(':') + 1), &port));
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  MILLRACE_CHECK(socket_ >= 0);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                 sizeof(receive_buffer));
  }
  const timeval wait{.tv_sec = kWaitSeconds, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  MILLRACE_CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&address),
                           sizeof(address)) == 0);
}

TestClient::~TestClient() { Close(); }

void TestClient::Close() {
  if (socket_ >= 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

bool TestClient::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void TestClient::EndSending() const { ::shutdown(socket_, SHUT_WR); }

bool TestClient::Fill() {
  char buffer[16384];
  const ssize_t got = ::recv(socket_, buffer, sizeof(buffer), 0);
  if (got <= 0) {
    return false;
  }
  input_.append(buffer, static_cast<size_t>(got));
  return true;
}

std::string TestClient::ReadUntil(absl::string_view text) {
  while (!absl::StrContains(input_, text) && Fill()) {
  }
  return input_;
}

std::string TestClient::ReadAnswer() {
  ReadUntil("\r\n\r\n");
  const size_t end = input_.find("\r\n\r\n");
  if (end == std::string::npos) {
    return "";
  }
  size_t size = end + 4;
  const std::string head = input_.substr(0, end + 2);
  if (FieldOf(head, "Transfer-Encoding") == "chunked") {
    ReadUntil("\r\n0\r\n\r\n");
    size = input_.find("\r\n0\r\n\r\n", end) + 7;
  } else {
    size_t length = 0;
    if (absl::SimpleAtoi(FieldOf(head, "Content-Length"), &length)) {
      size += length;
    }
    while (input_.size() < size && Fill()) {
    }
  }
  std::string out = input_.substr(0, size);
  input_.erase(0, size);
  return out;
}

std::string TestClient::ReadToEnd() {
  while (Fill()) {
  }
  return std::exchange(input_, std::string());
}

std::string RequestText(absl::string_view path, absl::string_view body,
                        absl::string_view extra_fields) {
  if (body.empty()) {
    return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\n",
                        extra_fields, "\r\n");
  }
  return absl::StrCat("POST ", path,
                      " HTTP/1.1\r\nHost: test\r\nContent-Type: "
                      "application/json\r\nContent-Length: ",
                      body.size(), "\r\n", extra_fields, "\r\n", body);
}

int StatusOf(absl::string_view answer) {
  int status = 0;
  if (!absl::StartsWith(answer, "HTTP/1.1 ") ||
      !absl::SimpleAtoi(answer.substr(9, 3), &status)) {
    return 0;
  }
  return status;
}

std::string BodyOf(absl::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  if (end == absl::string_view::npos) {
    return "";
  }
  absl::string_view rest = answer.substr(end + 4);
  if (FieldOf(answer.substr(0, end + 2), "Transfer-Encoding") != "chunked") {
    return std::string(rest);
  }
  std::string body;
  while (true) {
    const size_t line = rest.find("\r\n");
    const size_t size =
        std::strtoul(std::string(rest.substr(0, line)).c_str(), nullptr, 16);
    if (line == absl::string_view::npos || size == 0 ||
        rest.size() < line + 2 + size) {
      return body;
    }
    body.append(rest.data() + line + 2, size);
    rest.remove_prefix(line + 2 + size + 2);
  }
}

}  // namespace millrace::coordinator
