#include "planner/planner.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "planner/cost_model.h"
#include "planner/criteria.h"
#include "planner/placement.h"
#include "planner/plan_numbers.h"

namespace millrace::planner {
namespace {

// What the nodes that may be used have for a model, at best.
struct Room {
  int64_t nodes = 0;
  int64_t together = 0;
  int64_t largest = 0;
  std::string named;  // how a sentence calls these nodes
};

Room RoomOf(const CostModel& model, int64_t spare) {
  const auto all = static_cast<int64_t>(model.cluster().nodes.size());
  std::vector<int64_t> available;
  for (int64_t node = 0; node < all; ++node) {
    available.push_back(std::max<int64_t>(0, model.Available(node)));
  }
  std::sort(available.rbegin(), available.rend());
  available.resize(static_cast<size_t>(std::max<int64_t>(0, all - spare)));
  Room room;
  room.nodes = static_cast<int64_t>(available.size());
  room.together =
      std::accumulate(available.begin(), available.end(), int64_t{0});
  room.largest = available.empty() ? 0 : available.front();
  room.named = spare == 0
                   ? "all nodes together"
                   : absl::StrCat("the largest ", room.nodes, " of ", all,
                                  " nodes (the constraint spare keeps ", spare,
                                  " unused) together");
  return room;
}

// Memory of the whole model and of the whole cluster: the first thing to look
// at when it does not fit.
std::string WhyNot(const CostModel& model, int64_t spare) {
  const int64_t layers = model.num_layers();
  const int64_t weights = model.WeightsBytes(LayerRun{0, layers});
  const Room room = RoomOf(model, spare);
  if (room.nodes == 0) {
    return absl::StrCat("does not fit: the constraint spare keeps ", spare,
                        " nodes unused, the cluster has ",
                        model.cluster().nodes.size());
  }
  int64_t widest = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const LayerRun run = {layer, layer + 1};
    widest = std::max(widest,
                      model.WeightsBytes(run) + model.ScratchBytes({&run, 1}));
  }
  if (weights > room.together) {
    return absl::StrCat("does not fit: the weights are ", HumanSize(weights),
                        ", ", room.named, " have ", HumanSize(room.together),
                        "; ", HumanSize(weights - room.together),
                        " are missing");
  }
  if (widest > room.largest) {
    return absl::StrCat("does not fit: one layer with its scratch needs ",
                        HumanSize(widest), ", the largest node has ",
                        HumanSize(room.largest));
  }
  return absl::StrCat("does not fit: weights of ", HumanSize(weights),
                      " with KV and scratch find no place, ", room.named,
                      " have ", HumanSize(room.together),
                      "; a shorter --context or fewer sequences need less");
}

std::string WhyYes(const Plan& plan, const Cluster& cluster) {
  std::string text = absl::StrCat("fits on ", plan.stages.size(), " of ",
                                  cluster.nodes.size(), " nodes");
  const ContextConcurrency& first = plan.concurrency.front();
  if (first.sequences.has_value()) {
    absl::StrAppend(&text, ", ", *first.sequences, " sequences of ",
                    first.context, " tokens");
  } else {
    absl::StrAppend(&text, ", sequences unbounded by memory");
  }
  if (plan.tokens_per_s.has_value()) {
    absl::StrAppendFormat(&text, ", about %.3g tokens/s", *plan.tokens_per_s);
  }
  return text;
}

void FillBounds(const Placement& placement, Plan& plan) {
  plan.bounds.nodes_used = 1;
  if (placement.exact && plan.cycle_s.has_value()) {
    plan.bounds.cycle_s = plan.cycle_s;
    plan.bounds.tokens_per_s = plan.tokens_per_s;
    plan.bounds.gap = 0;
  }
}

absl::StatusOr<Plan> PlanOnce(const PlanInput& input) {
  const CostModel model(input.costs, input.cluster, input.options.contexts[0],
                        input.scratch);
  Plan plan;
  plan.objective = input.options.objective;
  const absl::StatusOr<std::vector<Criterion>> criteria =
      CriteriaOf(plan.objective, model);
  if (!criteria.ok() && !input.unknown_speeds_are_equal) {
    return criteria.status();
  }
  const std::optional<Placement> placement =
      PlaceContiguous(model, input.options.sequences());
  if (!placement.has_value()) {
    plan.verdict = WhyNot(model, input.cluster.SpareNodes());
    return plan;
  }
  plan.fits = true;
  plan.route = placement->route;
  FillNumbers(model, input.options, plan);
  FillBounds(*placement, plan);
  plan.verdict = WhyYes(plan, input.cluster);
  return plan;
}

// What one more node like the first would bring, found by planning anew.
absl::Status AddAdvice(const PlanInput& input, Plan& plan) {
  const Cluster& cluster = input.cluster;
  if (cluster.nodes.size() >= static_cast<size_t>(kNodesMax)) {
    return absl::OkStatus();
  }
  Cluster larger = cluster;
  const Node& kind = cluster.nodes.front();
  larger.nodes.push_back(kind);
  MILLRACE_ASSIGN_OR_RETURN(
      const Plan with,
      PlanOnce({input.costs, larger, input.options, input.scratch,
                input.unknown_speeds_are_equal}));
  Advice advice;
  advice.change = absl::StrCat("one more node like ", kind.name);
  if (!plan.fits && with.fits) {
    advice.effect = "fits";
    plan.advice.push_back(advice);
  }
  if (!plan.fits || !with.fits) {
    return absl::OkStatus();
  }
  if (plan.tokens_per_s.has_value() && with.tokens_per_s.has_value()) {
    advice.gain = *with.tokens_per_s / *plan.tokens_per_s - 1;
    if (advice.gain > 0.005) {
      advice.effect = absl::StrFormat("+%.0f %% tokens/s", 100 * advice.gain);
      plan.advice.push_back(advice);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const PlanInput& input) {
  MILLRACE_ASSIGN_OR_RETURN(Plan plan, PlanOnce(input));
  MILLRACE_RETURN_IF_ERROR(AddAdvice(input, plan));
  return plan;
}

}  // namespace millrace::planner
