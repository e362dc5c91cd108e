#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "coordinator/engine/engine.h"

namespace millrace::coordinator {

// How a request to generate ended.
enum class RequestOutcome { kCompleted, kRefused, kCancelled, kFailed };

// The series of /metrics: what the API measures itself, and the engine's
// snapshot at the moment of the scrape. Label values come from the plan and
// from closed lists, never from a client. Any thread.
class ApiMetrics {
 public:
  ApiMetrics();
  ~ApiMetrics();
  ApiMetrics(const ApiMetrics&) = delete;
  ApiMetrics& operator=(const ApiMetrics&) = delete;

  void CountRequest(RequestOutcome outcome);
  // From a request's arrival to the first token of a sequence.
  void ObserveFirstToken(absl::Duration time);
  // Mean time between the tokens of one sequence.
  void ObserveTokenInterval(absl::Duration time);
  void ObserveRequest(absl::Duration time);

  // Prometheus text format 0.0.4.
  [[nodiscard]] std::string Serialize(const EngineSnapshot& snapshot,
                                      int64_t num_connections) const;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

inline constexpr char kMetricsContentType[] =
    "text/plain; version=0.0.4; charset=utf-8";

}  // namespace millrace::coordinator
