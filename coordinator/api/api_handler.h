#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "coordinator/api/api_metrics.h"
#include "coordinator/api/generation.h"
#include "coordinator/api/key_store.h"
#include "coordinator/api/request_planner.h"
#include "coordinator/api/request_workers.h"
#include "coordinator/http/exchange.h"

namespace millrace::coordinator {

// Routes requests, refuses bad ones and turns good ones into generations.
// Handlers run on the server's loop and leave what takes time to workers.
class ApiHandler final : public HttpHandler {
 public:
  struct Options {
    ServedModel model;
    KeyStore keys;
    std::string version;      // of the program
    std::string fingerprint;  // system_fingerprint of all answers
    std::shared_ptr<const GenerationServices> services;
    std::function<int64_t()> num_connections;
    int num_workers = 2;
    int64_t body_bytes_max = int64_t{8} << 20;
  };
  explicit ApiHandler(Options options);
  ~ApiHandler() override;

  bool AcceptHead(const HttpRequest& head, HttpResponse& refusal) override;
  void Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
  HttpResponse Refusal(int status, absl::string_view why) override;

  // From now on requests to generate are refused with 503. Any thread.
  void BeginDrain() { draining_.store(true, std::memory_order_relaxed); }

 private:
  struct Route;
  // Null when no path fits.
  static const Route* FindRoute(absl::string_view path);

  // Answers of GET, at once.
  HttpResponse Models(const HttpRequest& request) const;
  HttpResponse Model(const HttpRequest& request) const;
  HttpResponse Health(const HttpRequest& request) const;
  HttpResponse Ready(const HttpRequest& request) const;
  HttpResponse Version(const HttpRequest& request) const;
  HttpResponse Metrics(const HttpRequest& request) const;

  // Answers of POST, on a worker.
  void Work(const Route& route, const HttpRequest& request,
            absl::Duration received, const std::shared_ptr<Exchange>& exchange);
  absl::StatusOr<GenerationPlan> MakePlan(const Route& route, const Json& body);

  [[nodiscard]] absl::Status CheckServing() const;
  [[nodiscard]] Json ModelEntry() const;

  const Options options_;
  RequestPlanner planner_;
  std::atomic<bool> draining_{false};
  RequestWorkers workers_;  // last: its threads use everything above
};

}  // namespace millrace::coordinator
