#include "planner/streamed/held_costs.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "planner/plan_numbers.h"

namespace millrace::planner::streamed {
namespace {

// Scratch as the stages of a plan say it, by their first layer.
ScratchFunction ScratchOfStages(const Plan& plan) {
  absl::flat_hash_map<int64_t, int64_t> known;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    known.emplace(plan.route[i].first_layer, plan.stages[i].scratch_bytes);
  }
  return [known = std::move(known)](std::span<const LayerRun> runs) {
    const auto found = known.find(runs.empty() ? -1 : runs.front().begin);
    return found == known.end() ? 0 : found->second;
  };
}

void HoldRun(const StreamedNodes& nodes, const RouteEntry& entry,
             const Holding& holding, ModelCosts& costs) {
  const Node& hardware =
      nodes.model().cluster().nodes[static_cast<size_t>(entry.node)];
  // Bytes that memory delivers while NVMe delivers one.
  const double ratio =
      hardware.memory_bandwidth.value_or(0) / *hardware.nvme_bandwidth;
  for (int64_t i = entry.first_layer; i <= entry.last_layer; ++i) {
    LayerCost& layer = costs.layers[static_cast<size_t>(i)];
    layer.weights_bytes = nodes.LayerTrunkBytes(i);
    if (layer.experts.count == 0) {
      continue;
    }
    // Whole bytes: sums over layers stay exact.
    const double read = std::round(static_cast<double>(nodes.RecordBytes(i)) *
                                   (1 - holding.hit_share) * ratio);
    layer.experts.bytes_each += read;
    layer.bytes_per_token += static_cast<double>(layer.experts.used) * read;
  }
  const LayerRun run = entry.run();
  costs.layers[static_cast<size_t>(run.begin)].weights_bytes +=
      holding.weights_bytes - nodes.TrunkBytes(run);
}

}  // namespace

std::optional<ModelCosts> HeldCosts(const StreamedNodes& nodes,
                                    std::span<const RouteEntry> route) {
  ModelCosts costs = nodes.model().costs();
  for (const RouteEntry& entry : route) {
    const std::optional<Holding> holding = nodes.Hold(entry.node, entry.run());
    if (!holding.has_value()) {
      return std::nullopt;
    }
    if (holding->streams()) {
      HoldRun(nodes, entry, *holding, costs);
    }
  }
  return costs;
}

ModelCosts CostsOfPlan(const ModelCosts& costs, const Cluster& cluster,
                       const PlanOptions& options, const Plan& plan) {
  if (plan.placement != PlacementKind::kStreamed || !plan.fits) {
    return costs;
  }
  const CostModel model(costs, cluster, options.contexts.front(),
                        ScratchOfStages(plan));
  return HeldCosts(StreamedNodes(model, options.sequences()), plan.route)
      .value_or(costs);
}

absl::Status FillStreamed(const StreamedNodes& nodes,
                          const PlanOptions& options, Plan& plan) {
  plan.route = MergeRoute(plan.route);
  const Cluster& cluster = nodes.model().cluster();
  const std::optional<ModelCosts> held = HeldCosts(nodes, plan.route);
  if (!held.has_value()) {
    return InputError(
        "route", "a node has less memory or NVMe space than its layers need",
        "make the plan anew with plan --out");
  }
  const CostModel model(*held, cluster, nodes.model().context(),
                        [&nodes](std::span<const LayerRun> runs) {
                          return nodes.model().ScratchBytes(runs);
                        });
  FillNumbers(model, options, plan);
  for (size_t i = 0; i < plan.route.size(); ++i) {
    const RouteEntry& entry = plan.route[i];
    const Holding holding = *nodes.Hold(entry.node, entry.run());
    StreamedStage& stage = plan.stages[i].streamed.emplace();
    stage.experts = holding.demand.records;
    stage.experts_held = holding.experts_held;
    stage.hit_share = holding.hit_share;
    if (plan.rows.has_value()) {
      stage.read_bytes = nodes.ReadBytes(entry.run(), holding, *plan.rows);
      stage.read_s =
          nodes.ReadSeconds(entry.node, entry.run(), holding, *plan.rows);
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace::planner::streamed
