#pragma once

#include <atomic>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/endpoint.h"

namespace millrace::cli {

struct HttpRequest {
  transport::Endpoint server;
  std::string method = "GET";
  std::string path = "/";
  std::string body;
  absl::Duration timeout;
};
// The body of a 200 answer, at most 16 MiB, over a connection of its own.
// kUnavailable: nobody there, or another status, with what the server says;
// kDeadlineExceeded; kCancelled soon after `cancelled`. Any thread.
absl::StatusOr<std::string> HttpCall(const HttpRequest& request,
                                     const std::atomic<bool>& cancelled);

// "http://HOST:PORT" as servers announce it; UsageError naming `option`.
absl::StatusOr<transport::Endpoint> ParseHttpUrl(absl::string_view option,
                                                 absl::string_view url);

}  // namespace millrace::cli
