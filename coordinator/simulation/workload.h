#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace millrace::coordinator {

// One request of a recorded load.
struct TraceEntry {
  absl::Duration at;  // since the first one
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
};

// How requests arrive.
struct Arrivals {
  // Requests a second; 0: not by a rate.
  double rate = 0;
  // Shape of the Gamma distribution of the gaps, > 0: 1 is Poisson, less comes
  // in bursts, more is more even.
  double burstiness = 1;
  // Clients that each send a request when the last one has ended; 0: none.
  int64_t concurrency = 0;
  // When it is not empty, the rest of it is not looked at.
  std::vector<TraceEntry> trace;
};

// Tokens, drawn evenly from length (1 - spread) to length (1 + spread).
struct TokenLength {
  int64_t tokens = 1;
  double spread = 0;  // [0, 1]

  [[nodiscard]] int64_t Least() const;
  [[nodiscard]] int64_t Most() const;
};

struct Workload {
  Arrivals arrivals;
  int64_t requests = 0;  // of a trace: its first ones
  TokenLength input;
  TokenLength output;
  uint64_t seed = 0;
};

// The requests of a workload, one after the other. The same seed gives the same
// lengths whatever the arrivals, and gaps that are in proportion to 1 / rate.
class RequestSource {
 public:
  // `workload` outlives it.
  explicit RequestSource(const Workload& workload);

  // The next request, `at` being 0 with concurrency; nothing after the last.
  std::optional<TraceEntry> Next();
  [[nodiscard]] int64_t num_left() const { return left_; }

 private:
  int64_t DrawLength(const TokenLength& length);
  double DrawGap();  // of mean 1

  const Workload& workload_;
  std::mt19937_64 gaps_;
  std::mt19937_64 lengths_;
  int64_t left_ = 0;
  size_t next_of_trace_ = 0;
  double at_s_ = 0;
};

}  // namespace millrace::coordinator
