#include "planner/streamed/plan_streamed.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "planner/criteria.h"
#include "planner/plan_verdict.h"
#include "planner/streamed/held_costs.h"
#include "planner/streamed/streamed_search.h"

namespace millrace::planner::streamed {
namespace {

CostModel ModelOf(const PlanInput& input) {
  return CostModel(*input.costs, *input.cluster, input.options->contexts[0],
                   input.scratch);
}

absl::Status CheckInput(const PlanInput& input, const StreamedNodes& nodes) {
  if (input.options->objective == Objective::kConcurrency) {
    return UsageError(
        "--objective",
        "'concurrency' goes without --placement streamed: memory that "
        "sequences leave is a cache of experts, so that more of them always "
        "make it slower",
        "give their number by --concurrency, with another objective");
  }
  if (!nodes.has_experts()) {
    return UsageError("--placement",
                      "'streamed' needs a model with routed experts: this one "
                      "has none that could be read from a disk",
                      "give auto, contiguous or interleaved");
  }
  const auto& all = input.cluster->nodes;
  if (std::none_of(all.begin(), all.end(), [](const Node& node) {
        return node.nvme_bandwidth.has_value();
      })) {
    return InputError("nodes",
                      "none has nvme.bandwidth, which --placement streamed "
                      "reads experts at",
                      "give nvme: {bandwidth: 3GB/s} of the nodes that may "
                      "stream, as probe --nvme measures it");
  }
  if (const std::string missing = MissingForTimes(nodes.model());
      !missing.empty()) {
    return InputError(
        missing, "is missing, which --placement streamed compares times by",
        "give it in the cluster file");
  }
  return absl::OkStatus();
}

std::string Size(const absl::int128& bytes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return HumanSize(bytes > kMost ? kMost : static_cast<int64_t>(bytes));
}

std::string NameOfNode(const PlanInput& input, int64_t node) {
  return Printable(input.cluster->nodes[static_cast<size_t>(node)].name);
}

// A layer that stands nowhere, even with one token's experts in memory.
std::string WhyNotStreamed(const StreamedNodes& nodes) {
  const CostModel& model = nodes.model();
  if (model.num_nodes() <= model.cluster().SpareNodes()) {
    return WhyNot(model, nodes.sequences());
  }
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    const LayerRun run = {layer, layer + 1};
    bool held = false;
    int64_t largest = 0;
    for (int64_t node = 0; node < model.num_nodes() && !held; ++node) {
      held = model.Allows(node, run) && nodes.Hold(node, run).has_value();
      largest = std::max(largest, model.Available(node));
    }
    if (!held) {
      return absl::StrCat(
          "does not fit, experts streamed or not: layer ", layer,
          " alone has a floor of ", Size(nodes.FloorBytes(run)),
          " (trunk, scratch, KV and state of the sequences, eight read "
          "buffers, experts of one token), and no node that may hold it has "
          "that beside an NVMe device with its bandwidth and enough space; the "
          "largest has ",
          HumanSize(largest));
    }
  }
  absl::int128 floors = 0;
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    floors += nodes.TrunkBytes({layer, layer + 1}) +
              model.SequenceBytes({layer, layer + 1}) * nodes.sequences();
  }
  absl::int128 together = 0;
  for (int64_t node = 0; node < model.num_nodes(); ++node) {
    together += std::max<int64_t>(0, model.Available(node));
  }
  return absl::StrCat(
      "does not fit, experts streamed or not: trunk and sequences of all "
      "layers are ",
      Size(floors),
      ", beside them every node needs scratch, read buffers and "
      "the experts of one token in a layer; all nodes together have ",
      Size(together));
}

// What is read, and where it takes longest.
std::string ReadsOf(const PlanInput& input, const Plan& plan) {
  int64_t experts = 0;
  int64_t held = 0;
  const PlanStage* slowest = nullptr;
  for (const PlanStage& stage : plan.stages) {
    experts += stage.streamed->experts;
    held += stage.streamed->experts_held;
    if (slowest == nullptr || stage.streamed->read_s.value_or(0) >
                                  slowest->streamed->read_s.value_or(0)) {
      slowest = &stage;
    }
  }
  if (held == experts) {
    return "; all experts are in memory, nothing is streamed";
  }
  return absl::StrFormat(
      "; %d of %d experts are in memory, the others are read from NVMe: node "
      "%s reads %s in %s a pass (estimated, as if all experts were equally "
      "likely)",
      held, experts, NameOfNode(input, slowest->node),
      HumanSize(
          static_cast<int64_t>(slowest->streamed->read_bytes.value_or(0))),
      HumanDuration(absl::Seconds(slowest->streamed->read_s.value_or(0))));
}

}  // namespace

absl::StatusOr<Plan> PlanStreamedOnce(const PlanInput& input) {
  MILLRACE_RETURN_IF_ERROR(CheckExperts(*input.costs, input.costs->name));
  const CostModel model = ModelOf(input);
  const StreamedNodes nodes(model, input.options->sequences());
  MILLRACE_RETURN_IF_ERROR(CheckInput(input, nodes));
  Plan plan;
  plan.objective = input.options->objective;
  plan.placement = PlacementKind::kStreamed;
  MILLRACE_ASSIGN_OR_RETURN(
      std::optional<StreamedRoute> found,
      SearchStreamed(nodes, plan.objective, input.options->concurrency));
  if (!found.has_value()) {
    return plan;
  }
  plan.fits = true;
  plan.route = std::move(found->route);
  plan.bounds = found->bounds;
  MILLRACE_RETURN_IF_ERROR(FillStreamed(nodes, *input.options, plan));
  return plan;
}

void DescribeStreamed(const PlanInput& input, Plan& plan) {
  const CostModel model = ModelOf(input);
  plan.verdict =
      plan.fits
          ? absl::StrCat(VerdictOn(model, plan), ReadsOf(input, plan))
          : WhyNotStreamed(StreamedNodes(model, input.options->sequences()));
  plan.notes = NotesOn(model, plan);
  plan.notes.push_back(
      "a streamed stage holds its trunk, the sequences and a cache of whole "
      "experts; hits are the share that the cache holds, the least of any "
      "model, and reading hides behind nothing: real times are shorter");
  plan.notes.push_back(
      "streamed plans have one run of layers a node; workers of this version "
      "hold all experts in memory and do not run them");
}

}  // namespace millrace::planner::streamed
