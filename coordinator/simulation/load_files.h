#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/simulation/fault.h"
#include "coordinator/simulation/simulated_pipeline.h"
#include "coordinator/simulation/workload.h"

namespace millrace::coordinator {

// Files of one JSON object a line; empty lines are passed over. Errors are
// InputErrors that name `object`, the line and the key.

inline constexpr int64_t kTraceEntriesMax = 10'000'000;
inline constexpr int64_t kTokensMax = int64_t{1} << 30;  // of a request

// Asked many times a second; false ends the reading with kCancelled. Empty: go
// on.
using GoOn = std::function<bool()>;

// A recorded load: `timestamp` (milliseconds), `input_length` and
// `output_length` (tokens, at least 1) of each request; further keys are not
// looked at. Sorted by time, the first at 0.
absl::StatusOr<std::vector<TraceEntry>> ParseTrace(absl::string_view text,
                                                   absl::string_view object,
                                                   const GoOn& go_on = {});

// What goes wrong: `at` (seconds, or text as "90s"), `kind` (lost, stalled,
// slow, cut, back), `node` or `between` [a, b], `factor` of slow. Sorted by
// time. Names are those of `pipeline`, links those that its route crosses.
absl::StatusOr<std::vector<Fault>> ParseFaults(
    absl::string_view text, absl::string_view object,
    const SimulatedPipeline& pipeline);

}  // namespace millrace::coordinator
