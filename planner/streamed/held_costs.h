#pragma once

#include <optional>
#include <span>

#include "absl/status/status.h"
#include "planner/cluster.h"
#include "planner/costs.h"
#include "planner/plan.h"
#include "planner/streamed/streamed_nodes.h"

namespace millrace::planner::streamed {

// A model as the nodes of a streamed route hold it, so that every definition of
// an ordinary plan holds for it: weights are what is resident (the first layer
// of a run has the node's slots and buffers), and bytes that a pass reads from
// NVMe count as those that memory would deliver in the same time. Only for this
// route; times of nodes whose memory bandwidth is unknown stay unknown.
// Nothing where a node has no room for its run. Every node stands in the route
// once.
std::optional<ModelCosts> HeldCosts(const StreamedNodes& nodes,
                                    std::span<const RouteEntry> route);

// The costs that the numbers of a plan follow from: of a streamed one those
// above, else `costs` as they are. `plan` fits; its stages say their scratch.
ModelCosts CostsOfPlan(const ModelCosts& costs, const Cluster& cluster,
                       const PlanOptions& options, const Plan& plan);

// FillNumbers() for a plan with a streamed route, and what its stages read.
// InputError that names the node where one has no room for its run.
absl::Status FillStreamed(const StreamedNodes& nodes,
                          const PlanOptions& options, Plan& plan);

}  // namespace millrace::planner::streamed
