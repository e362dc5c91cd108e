#include "coordinator/simulation/simulated_pipeline.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "planner/expert_cache.h"

namespace millrace::coordinator {
namespace {

// One pass of a full frame; whoever waits longer has mistyped a number.
constexpr double kPassSecondsMax = 24 * 3600;

absl::Status CheckSeconds(absl::string_view object, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0 && seconds <= kPassSecondsMax) {
    return absl::OkStatus();
  }
  return InputError(object,
                    absl::StrCat("a pass of a full frame takes ", seconds,
                                 " seconds: simulated is up to a day"));
}

// Rows that cost as much as what a pass costs without any, over the whole
// route: what the coordinator cuts short prompts by.
int64_t FixedCostRows(const SimulatedPipeline& pipeline) {
  double pass_s = 0;
  double row_s = 0;
  for (const SimulatedSegment& segment : pipeline.segments) {
    pass_s += segment.pass_s;
    row_s += segment.row_s;
  }
  const auto most = static_cast<double>(pipeline.chunk);
  return row_s * most <= pass_s
             ? pipeline.chunk
             : std::max<int64_t>(1, std::llround(pass_s / row_s));
}

}  // namespace

double PassSeconds(const SimulatedSegment& segment, int64_t rows) {
  double seconds = segment.pass_s + static_cast<double>(rows) * segment.row_s;
  for (const ExpertReads& experts : segment.experts) {
    seconds += planner::ExpertsBeyondOne(experts.count, experts.used, rows) *
               experts.seconds_per_expert;
  }
  return seconds;
}

absl::Status SimulatedPipeline::Validate() const {
  if (segments.empty() || hops.size() + 1 != segments.size()) {
    return InputError("pipeline",
                      "needs a segment, and a hop between each two of them");
  }
  MILLRACE_RETURN_IF_ERROR(CoreConfigOf().Validate());
  const int64_t rows = CoreConfigOf().WithDefaults().rows_max;
  for (const SimulatedSegment& segment : segments) {
    if (segment.node < 0 ||
        segment.node >= static_cast<int64_t>(nodes.size())) {
      return InputError("pipeline", "a segment is on none of its nodes");
    }
    for (const ExpertReads& experts : segment.experts) {
      if (experts.used < 1 || experts.count < experts.used) {
        return InputError("pipeline", "reads more experts than there are");
      }
    }
    const std::string& name = nodes[static_cast<size_t>(segment.node)].name;
    MILLRACE_RETURN_IF_ERROR(CheckSeconds(name, segment.pass_s));
    MILLRACE_RETURN_IF_ERROR(CheckSeconds(name, segment.row_s));
    MILLRACE_RETURN_IF_ERROR(CheckSeconds(name, PassSeconds(segment, rows)));
    // Of a frame with a long sequence in every row.
    const auto sequences = static_cast<double>(rows);
    const auto positions =
        static_cast<double>(CoreConfigOf().WithDefaults().context);
    MILLRACE_RETURN_IF_ERROR(
        CheckSeconds(name, sequences * segment.sequence_s));
    for (const KvReads& kv : segment.kv) {
      MILLRACE_RETURN_IF_ERROR(
          CheckSeconds(name, sequences * positions * kv.position_s));
    }
  }
  for (const SimulatedHop& hop : hops) {
    MILLRACE_RETURN_IF_ERROR(CheckSeconds(
        "link", hop.latency_s + static_cast<double>(rows) * hop.row_s));
    MILLRACE_RETURN_IF_ERROR(CheckSeconds("link", hop.row_s));
    MILLRACE_RETURN_IF_ERROR(CheckSeconds("link", hop.latency_s));
  }
  MILLRACE_RETURN_IF_ERROR(CheckSeconds("coordinator", coordinator_s));
  return CheckSeconds("link", return_s);
}

CoreConfig SimulatedPipeline::CoreConfigOf() const {
  CoreConfig config;
  config.stages = nodes;
  config.context = context;
  // Tokens are not looked at.
  config.vocab_size = 1;
  config.chunk = chunk;
  config.rows_max = rows_max;
  config.microbatches = microbatches;
  config.fixed_cost_rows = FixedCostRows(*this);
  return config;
}

}  // namespace millrace::coordinator
