#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::transport {

// A host name or address literal (IPv6 without brackets) and a port.
struct Endpoint {
  std::string host;
  uint16_t port = 0;  // 0: any free one, for listeners
};

// "host:port", "127.0.0.1:0", "[::1]:7000". UsageError otherwise.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);
// The inverse; brackets around IPv6.
std::string FormatEndpoint(const Endpoint& endpoint);

// Whether `host` is an IPv4 or IPv6 address rather than a name, so that using
// it asks no name server.
bool IsAddressLiteral(const std::string& host);

// Whether every address that `host` stands for is this machine's loopback.
// Resolves names, which can block; false where that fails.
bool IsLoopback(const std::string& host);

// Links carry hidden states and tokens in clear and believe what they read.
// Off loopback that takes --insecure; UsageError says so otherwise.
absl::Status RequireTrustedLink(const Endpoint& endpoint, bool insecure);

}  // namespace millrace::transport
