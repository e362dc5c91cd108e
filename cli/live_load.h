#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "boost/json/object.hpp"
#include "cli/console.h"

namespace millrace::cli {

// The load of a cluster that serves, by what its coordinator counts.
struct LiveLoad {
  std::string url;
  int64_t prompt_len = 1;   // tokens, mean of finished sequences
  int64_t output_len = 1;   // the same
  int64_t concurrency = 1;  // running and waiting, mean over the samples
  int64_t sequences = 0;    // finished ones that the lengths come from
  // Seconds that were watched. Too few sequences finished in them: the lengths
  // are those since the coordinator's start.
  double seconds = 0;
  bool lengths_since_start = false;

  [[nodiscard]] boost::json::object ToJson() const;
  [[nodiscard]] std::string Text() const;
};

// Reads /metrics of the coordinator at `url` ("http://HOST:PORT") once a second
// for so long. UsageError for another url; kUnavailable where nobody answers,
// or nothing was served yet; kCancelled within a second of an interrupt.
absl::StatusOr<LiveLoad> MeasureLoad(const std::string& url,
                                     absl::Duration window, Console& console);

}  // namespace millrace::cli
