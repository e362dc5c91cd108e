#include "planner/plan_numbers.h"

#include <algorithm>
#include <cmath>

namespace millrace::planner {
namespace {

constexpr int64_t kChunkDefault = 512;
// A ratio this close to a whole number is that number.
constexpr double kWholeTolerance = 1e-12;

int64_t CeilRatio(double ratio) {
  const double nearest = std::round(ratio);
  if (std::fabs(ratio - nearest) <= kWholeTolerance * std::max(1.0, ratio)) {
    return static_cast<int64_t>(nearest);
  }
  return static_cast<int64_t>(std::ceil(ratio));
}

struct Times {
  double cycle_s = 0;
  double loop_s = 0;
  Binding binding;
};

// Cycle and loop with `rows` sequences per micro-batch; nothing where a number
// is missing.
std::optional<Times> TimesOf(const StageModel& stages, const Plan& plan,
                             int64_t rows) {
  Times times;
  times.binding.kind = BindingKind::kTime;
  for (const RouteEntry& entry : plan.route) {
    const std::optional<double> seconds = stages.Seconds(
        entry.node, entry.first_layer, entry.last_layer + 1, rows);
    if (!seconds.has_value()) {
      return std::nullopt;
    }
    times.loop_s += *seconds;
    if (*seconds > times.cycle_s) {
      times.cycle_s = *seconds;
      times.binding = {BindingKind::kTime, entry.node};
    }
  }
  const double vector_bytes = static_cast<double>(stages.hidden_bytes());
  for (size_t hop = 0; hop + 1 < plan.route.size(); ++hop) {
    const int64_t from = plan.route[hop].node;
    const Link& link =
        stages.cluster().LinkBetween(from, plan.route[hop + 1].node);
    if (!link.bandwidth.has_value() || !link.latency_s.has_value()) {
      return std::nullopt;
    }
    const double occupancy =
        static_cast<double>(rows) * vector_bytes / *link.bandwidth;
    times.loop_s += *link.latency_s + occupancy;
    if (occupancy > times.cycle_s) {
      times.cycle_s = occupancy;
      times.binding = {BindingKind::kLink, from};
    }
  }
  const int64_t first = plan.route.front().node;
  const int64_t last = plan.route.back().node;
  if (first != last) {
    const Link& back = stages.cluster().LinkBetween(last, first);
    if (!back.latency_s.has_value()) {
      return std::nullopt;
    }
    times.loop_s += *back.latency_s;
  }
  return times;
}

int64_t MicrobatchesOf(const Times& times) {
  return times.cycle_s == 0
             ? 1
             : std::max<int64_t>(1, CeilRatio(times.loop_s / times.cycle_s));
}

// The smallest number of sequences per micro-batch that serves `concurrency`.
int64_t RowsFor(const StageModel& stages, const Plan& plan,
                int64_t concurrency) {
  for (int64_t rows = 1; rows < concurrency; ++rows) {
    const std::optional<Times> times = TimesOf(stages, plan, rows);
    if (!times.has_value() || rows * MicrobatchesOf(*times) >= concurrency) {
      return rows;
    }
  }
  return std::max<int64_t>(1, concurrency);
}

void FillTimes(const StageModel& stages, const PlanOptions& options,
               Plan& plan) {
  plan.rows = options.concurrency.has_value()
                  ? RowsFor(stages, plan, *options.concurrency)
                  : 1;
  const std::optional<Times> times = TimesOf(stages, plan, plan.rows);
  if (!times.has_value()) {
    return;
  }
  plan.cycle_s = times->cycle_s;
  plan.loop_s = times->loop_s;
  plan.binding = times->binding;
  const int64_t microbatches = MicrobatchesOf(*times);
  plan.microbatches = microbatches;
  const auto n = static_cast<double>(microbatches);
  if (times->cycle_s > 0) {
    plan.tokens_per_s = static_cast<double>(plan.rows) *
                        std::min(n / times->loop_s, 1 / times->cycle_s);
  }
  plan.tpot_s = std::max(times->loop_s, n * times->cycle_s);
  if (options.prompt_len.has_value()) {
    const int64_t chunk = options.chunk.value_or(kChunkDefault);
    const int64_t rows = std::min(*options.prompt_len, chunk);
    const std::optional<Times> prefill = TimesOf(stages, plan, rows);
    const int64_t passes = (*options.prompt_len + rows - 1) / rows;
    plan.ttft_s =
        prefill->loop_s + static_cast<double>(passes - 1) * prefill->cycle_s;
  }
}

PlanStage StageOf(const StageModel& stages, const PlanOptions& options,
                  const RouteEntry& entry, int64_t rows) {
  const int64_t begin = entry.first_layer;
  const int64_t end = entry.last_layer + 1;
  PlanStage stage;
  stage.node = entry.node;
  stage.weights_bytes = stages.costs().WeightsBytes(begin, end);
  stage.scratch_bytes = stages.ScratchBytes(begin, end);
  stage.kv_bytes_per_token = stages.KvBytesPerToken(begin, end);
  stage.free_bytes =
      stages.Available(entry.node) - stage.weights_bytes - stage.scratch_bytes;
  stage.segment_s = stages.Seconds(entry.node, begin, end, rows);
  stage.kv_bytes = stages.KvBytes(begin, end, options.contexts[0],
                                  options.concurrency.value_or(1));
  stage.resident_bytes =
      stage.weights_bytes + stage.scratch_bytes + stage.kv_bytes;
  return stage;
}

ContextConcurrency ConcurrencyAt(const StageModel& stages, const Plan& plan,
                                 int64_t context) {
  ContextConcurrency result;
  result.context = context;
  for (size_t i = 0; i < plan.route.size(); ++i) {
    const RouteEntry& entry = plan.route[i];
    const int64_t need =
        stages.KvBytes(entry.first_layer, entry.last_layer + 1, context, 1);
    if (need == 0) {
      continue;
    }
    const int64_t sequences =
        std::max<int64_t>(0, plan.stages[i].free_bytes) / need;
    if (!result.sequences.has_value() || sequences < *result.sequences) {
      result.sequences = sequences;
      result.binding_node = entry.node;
    }
  }
  return result;
}

}  // namespace

void FillNumbers(const StageModel& stages, const PlanOptions& options,
                 Plan& plan) {
  plan.binding = {BindingKind::kMemory, std::nullopt};
  FillTimes(stages, options, plan);
  plan.stages.clear();
  for (const RouteEntry& entry : plan.route) {
    plan.stages.push_back(StageOf(stages, options, entry, plan.rows));
  }
  plan.concurrency.clear();
  for (const int64_t context : options.contexts) {
    plan.concurrency.push_back(ConcurrencyAt(stages, plan, context));
  }
  if (!plan.cycle_s.has_value()) {
    plan.binding.node = plan.concurrency.front().binding_node;
  }
}

}  // namespace millrace::planner
