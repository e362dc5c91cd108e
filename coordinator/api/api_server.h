#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/api/api_handler.h"
#include "coordinator/api/key_store.h"
#include "coordinator/engine/engine.h"
#include "coordinator/http/http_limits.h"
#include "coordinator/http/http_server.h"

namespace millrace::coordinator {

// The OpenAI API over an engine: listener, routes, generations, metrics.
// Owned by the command that serves. Start and Stop from its thread; Drain from
// any but the engine's. Everything passed in outlives Stop.
class ApiServer {
 public:
  struct Options {
    Engine* engine = nullptr;  // required
    ServedModel model;
    KeyStore keys;  // empty: everybody is let in
    std::string host = "127.0.0.1";
    int port = 0;                      // 0: any free one
    std::string tls_certificate_file;  // both or neither
    std::string tls_key_file;
    std::string version;  // of the program
    HttpLimits limits;
    const Clock* clock = nullptr;  // null: the system's
  };

  // Listens and serves at once; the answer to requests before the engine is
  // ready is 503. UsageError for an address that cannot be used.
  static absl::StatusOr<std::unique_ptr<ApiServer>> Start(Options options);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Scheme, host and port.
  [[nodiscard]] std::string url() const;

  // Refuses new requests (503, /ready as well), lets running ones end until
  // `deadline`, then cancels them, and waits until the answers are out.
  void Drain(absl::Duration deadline);
  // Cancels running requests at once while Drain waits in another thread.
  void CutRunning();
  // Cuts what is left. Idempotent.
  void Stop();

 private:
  explicit ApiServer(Options options);
  absl::Status Listen();

  Options options_;
  const SystemClock system_clock_;
  const Clock* clock_;
  ApiMetrics metrics_;
  std::shared_ptr<HttpServer> http_;
  std::unique_ptr<ApiHandler> handler_;
};

// No listener off loopback without a key, unless `insecure` says that the
// network is trusted. UsageError names --host.
absl::Status CheckListenAddress(const std::string& host, bool has_keys,
                                bool insecure);

// What system_fingerprint says: the program's version and that an answer
// depends on the request and its seed alone.
std::string FingerprintOf(absl::string_view version);

}  // namespace millrace::coordinator
