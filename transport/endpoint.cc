#include "transport/endpoint.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace millrace::transport {
namespace {

constexpr size_t kHostBytesMax = 253;  // RFC 1035

absl::Status BadEndpoint(absl::string_view text) {
  return UsageError(Printable(text), "is no HOST:PORT",
                    "write for example 127.0.0.1:7000 or [::1]:7000; port 0 "
                    "takes any free one");
}

bool IsLoopbackAddress(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    const uint8_t* bytes = v6->sin6_addr.s6_addr;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && bytes[12] == 127);
  }
  return false;
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) {
    return BadEndpoint(text);
  }
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port_text = text.substr(colon + 1);
  const bool bracketed =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  uint32_t port = 0;
  if (host.empty() || host.size() > kHostBytesMax || port_text.empty() ||
      !absl::ascii_isdigit(static_cast<unsigned char>(port_text[0])) ||
      !absl::SimpleAtoi(port_text, &port) || port > 65535) {
    return BadEndpoint(text);
  }
  for (const char c : host) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_isgraph(byte) || c == '[' || c == ']' ||
        (c == ':' && !bracketed)) {
      return BadEndpoint(text);
    }
  }
  return Endpoint{std::string(host), static_cast<uint16_t>(port)};
}

std::string FormatEndpoint(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", endpoint.host, "]:", endpoint.port)
            : absl::StrCat(endpoint.host, ":", endpoint.port);
}

bool IsAddressLiteral(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool IsLoopback(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) {
    return false;
  }
  bool all = found != nullptr;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    all = all && IsLoopbackAddress(at->ai_addr);
  }
  freeaddrinfo(found);
  return all;
}

absl::Status RequireTrustedLink(const Endpoint& endpoint, bool insecure) {
  if (insecure || IsLoopback(endpoint.host)) {
    return absl::OkStatus();
  }
  return UsageError(
      FormatEndpoint(endpoint),
      "is off loopback, and links are neither encrypted nor authenticated",
      "pass --insecure only where every machine on this network is trusted");
}

}  // namespace millrace::transport
