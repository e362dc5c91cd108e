#include "planner/plan_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "planner/route_times.h"

namespace millrace::planner {
namespace {

constexpr int64_t kChunkDefault = 512;

int64_t Saturated(const absl::int128& value) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return value > kMost ? kMost : static_cast<int64_t>(value);
}

void FillTimes(const RouteTimes& times, const PlanOptions& options,
               const Measures& measures, Plan& plan) {
  plan.rows = measures.rows;
  plan.cycle_s = measures.cycle_s;
  plan.loop_s = measures.loop_s;
  plan.microbatches = measures.microbatches;
  plan.tokens_per_s = measures.tokens_per_s;
  if (measures.tokens_per_s.has_value() && measures.watts.value_or(0) > 0) {
    const double per_joule = *measures.tokens_per_s / *measures.watts;
    if (std::isfinite(per_joule)) {
      plan.tokens_per_joule = per_joule;
    }
  }
  if (!times.known()) {
    return;
  }
  plan.tpot_s = std::max(
      *plan.loop_s, static_cast<double>(*plan.microbatches) * *plan.cycle_s);
  if (options.prompt_len.has_value()) {
    const int64_t rows =
        std::min(*options.prompt_len, options.chunk.value_or(kChunkDefault));
    const int64_t passes = (*options.prompt_len + rows - 1) / rows;
    plan.ttft_s = times.LoopSeconds(rows) +
                  static_cast<double>(passes - 1) * times.CycleSeconds(rows);
  }
}

PlanStage StageOf(const CostModel& model, const NodeRuns& node,
                  int64_t sequences) {
  PlanStage stage;
  stage.node = node.node;
  stage.weights_bytes = model.WeightsBytes(node.runs);
  stage.scratch_bytes = model.ScratchBytes(node.runs);
  absl::int128 pools = 0;
  for (const LayerRun& run : node.runs) {
    stage.kv_bytes_per_token += model.KvBytesPerToken(run);
    stage.state_bytes_per_sequence += model.StateBytes(run);
    pools += model.SequenceBytes(run) * sequences;
  }
  stage.free_bytes =
      model.Available(node.node) - stage.weights_bytes - stage.scratch_bytes;
  stage.kv_bytes = Saturated(pools);
  stage.resident_bytes =
      Saturated(pools + stage.weights_bytes + stage.scratch_bytes);
  return stage;
}

// Seconds of all segments of a node; nothing where a rate is missing or where
// the rows are unknown and matter.
std::optional<double> SegmentSeconds(const CostModel& model,
                                     const std::optional<PassCost>& pass,
                                     const std::optional<int64_t>& rows) {
  if (!pass.has_value()) {
    return std::nullopt;
  }
  if (!rows.has_value()) {
    const double one = model.Seconds(*pass, 1);
    return pass->row_s == 0 && model.Seconds(*pass, 2) == one
               ? std::optional<double>(one)
               : std::nullopt;
  }
  return model.Seconds(*pass, *rows);
}

Measures MeasureTimes(const CostModel& model, const RouteTimes& times,
                      const std::optional<int64_t>& sequences) {
  Measures measures;
  measures.nodes_used = static_cast<int64_t>(times.nodes().size());
  measures.watts = 0;
  for (const RouteTimes::NodePass& own : times.nodes()) {
    const std::optional<double>& power =
        model.cluster().nodes[static_cast<size_t>(own.node)].power_w;
    if (!power.has_value()) {
      measures.watts.reset();
      break;
    }
    *measures.watts += *power;
  }
  if (!times.known()) {
    if (!sequences.has_value()) {
      measures.rows = 1;
    }
    return measures;
  }
  const int64_t rows = sequences.has_value() ? times.RowsFor(*sequences) : 1;
  const int64_t microbatches = times.Microbatches(rows);
  const double cycle = times.CycleSeconds(rows);
  const double loop = times.LoopSeconds(rows);
  measures.rows = rows;
  measures.microbatches = microbatches;
  measures.cycle_s = cycle;
  measures.loop_s = loop;
  if (cycle > 0) {
    measures.tokens_per_s =
        static_cast<double>(rows) *
        std::min(static_cast<double>(microbatches) / loop, 1 / cycle);
  }
  return measures;
}

Binding BindingOf(const RouteTimes& times, const Plan& plan) {
  const bool by_memory = plan.objective == Objective::kConcurrency ||
                         plan.objective == Objective::kNodes;
  return by_memory || !times.known()
             ? Binding{BindingKind::kMemory,
                       plan.concurrency.front().binding_node}
             : times.CycleBinding(*plan.rows);
}

}  // namespace

std::vector<NodeRuns> RunsByNode(std::span<const RouteEntry> route) {
  std::vector<NodeRuns> nodes;
  absl::flat_hash_map<int64_t, size_t> place;
  for (const RouteEntry& entry : route) {
    const auto [found, is_new] = place.emplace(entry.node, nodes.size());
    if (is_new) {
      nodes.push_back({entry.node, {}});
    }
    nodes[found->second].runs.push_back(entry.run());
  }
  return nodes;
}

std::vector<RouteEntry> MergeRoute(std::span<const RouteEntry> route) {
  std::vector<RouteEntry> merged;
  for (const RouteEntry& entry : route) {
    if (!merged.empty() && merged.back().node == entry.node) {
      merged.back().last_layer = entry.last_layer;
    } else {
      merged.push_back(entry);
    }
  }
  return merged;
}

ContextConcurrency ConcurrencyAt(const CostModel& model,
                                 std::span<const NodeRuns> nodes,
                                 int64_t context) {
  ContextConcurrency result;
  result.context = context;
  for (const NodeRuns& node : nodes) {
    absl::int128 need = 0;
    for (const LayerRun& run : node.runs) {
      need += model.SequenceBytesAt(run, context);
    }
    if (need == 0) {
      continue;
    }
    const int64_t free = model.Available(node.node) -
                         model.WeightsBytes(node.runs) -
                         model.ScratchBytes(node.runs);
    const auto sequences =
        static_cast<int64_t>(absl::int128(std::max<int64_t>(0, free)) / need);
    if (!result.sequences.has_value() || sequences < *result.sequences) {
      result.sequences = sequences;
      result.binding_node = node.node;
    }
  }
  return result;
}

Measures MeasureRoute(const CostModel& model, std::span<const RouteEntry> route,
                      std::optional<int64_t> sequences) {
  Measures measures = MeasureTimes(model, RouteTimes(model, route), sequences);
  measures.sequences =
      ConcurrencyAt(model, RunsByNode(route), model.context()).sequences;
  return measures;
}

void FillNumbers(const CostModel& model, const PlanOptions& options,
                 Plan& plan) {
  plan.route = MergeRoute(plan.route);
  const std::vector<NodeRuns> nodes = RunsByNode(plan.route);
  plan.concurrency.clear();
  for (const int64_t context : options.contexts) {
    plan.concurrency.push_back(ConcurrencyAt(model, nodes, context));
  }
  const RouteTimes times(model, plan.route);
  FillTimes(times, options, MeasureTimes(model, times, options.concurrency),
            plan);
  plan.stages.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    plan.stages.push_back(StageOf(model, nodes[i], options.sequences()));
    plan.stages.back().segment_s =
        SegmentSeconds(model, times.nodes()[i].pass, plan.rows);
  }
  plan.binding = BindingOf(times, plan);
}

}  // namespace millrace::planner
