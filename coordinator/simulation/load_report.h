#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/simulation/samples.h"

namespace millrace::coordinator {

// What each answer should keep; nothing where there is no limit.
struct ServiceLimits {
  std::optional<absl::Duration> ttft;
  std::optional<absl::Duration> tpot;
  std::optional<absl::Duration> e2el;

  [[nodiscard]] bool any() const { return ttft || tpot || e2el; }
};

struct NodeLoad {
  std::string name;
  double busy_share = 0;  // of the duration
};

// What a load met. Times and words are those of vLLM's `bench serve`: of
// completed requests, seconds; ttft from sending to the first token, e2el to
// the last, tpot the mean gap of an answer of two tokens or more, itl each gap
// between two tokens of one answer (also of answers that broke off).
struct LoadReport {
  int64_t requests = 0;  // sent
  int64_t completed = 0;
  // The others: at once, after waiting too long, with a stage or link.
  int64_t refused = 0;
  int64_t expired = 0;
  int64_t lost = 0;
  std::string first_error;   // empty when none failed
  absl::Duration duration;   // from the first request to the last end
  absl::Duration arriving;   // to the last request
  int64_t input_tokens = 0;  // of completed requests
  int64_t output_tokens = 0;
  Samples ttft, tpot, itl, e2el;
  int64_t good = 0;  // completed within all limits
  int64_t concurrent_max = 0;
  int64_t output_tokens_per_s_max = 0;  // in one second of the clock
  std::vector<NodeLoad> nodes;
  int64_t microbatches = 0;
  int64_t microbatches_wanted = 0;  // as SimulatedPipeline says
  double pipeline_fill = 0;         // micro-batches in flight over their number
  int64_t frames = 0;               // that carried rows

  [[nodiscard]] int64_t failed() const { return refused + expired + lost; }
  // No request failed and 99 % kept every limit.
  [[nodiscard]] bool MeetsLimits() const;
  [[nodiscard]] double PerSecond(int64_t count) const;
};

}  // namespace millrace::coordinator
