#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/http/exchange.h"
#include "coordinator/http/http_limits.h"

namespace millrace::coordinator {

// Listens, accepts and serves HTTP/1.1 on one thread of its own. Requests go to
// the handler on that thread. Any thread may call any method but the handler's
// callbacks must not call Drain or Stop.
class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // a numeric address or a name
    int port = 0;                    // 0: any free one
    // PEM files; both or neither.
    std::string tls_certificate_file;
    std::string tls_key_file;
    HttpLimits limits;
    const Clock* clock = nullptr;  // outlives the server; required
  };

  // Binds and listens, so that a port in use is an error here. UsageError names
  // host or port, InputError a certificate. Nothing is accepted before Serve.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(Options options);
  virtual ~HttpServer() = default;

  // scheme, host and port, as clients reach it from this machine.
  [[nodiscard]] virtual std::string url() const = 0;

  // Starts the thread; once. `handler` outlives Stop.
  virtual void Serve(HttpHandler& handler) = 0;

  // Runs `function` on the server's thread; dropped after Stop.
  virtual void Post(std::function<void()> function) = 0;
  virtual void PostAfter(absl::Duration delay,
                         std::function<void()> function) = 0;

  // Closes idle connections and those that become idle; answers in progress
  // end whole. Returns when none is left, or at the deadline. New connections
  // are still answered, so that probes see what goes on.
  virtual void Drain(absl::Duration deadline) = 0;

  // Breaks off what is left and joins the thread. Idempotent.
  virtual void Stop() = 0;

  // Open connections. Any thread.
  [[nodiscard]] virtual int64_t num_connections() const = 0;
};

// Whether `host` can only be reached from this machine: localhost, 127.0.0.0/8
// or ::1.
bool IsLoopback(const std::string& host);

}  // namespace millrace::coordinator
