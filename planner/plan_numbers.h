#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/cost_model.h"
#include "planner/criteria.h"
#include "planner/plan.h"

namespace millrace::planner {

// The runs of layers that one node holds, ascending.
struct NodeRuns {
  int64_t node = 0;
  std::vector<LayerRun> runs;
};

// By node, in the order in which the route meets them.
std::vector<NodeRuns> RunsByNode(std::span<const RouteEntry> route);

// The route with neighboring entries on one node made one.
std::vector<RouteEntry> MergeRoute(std::span<const RouteEntry> route);

// The sequences of `context` positions that a route holds, and the node that
// has room for the fewest (the first of several).
ContextConcurrency ConcurrencyAt(const CostModel& model,
                                 std::span<const NodeRuns> nodes,
                                 int64_t context);

// What the objectives compare of a route that covers all layers in order;
// `sequences`: those of --concurrency, which fix the rows, nothing: one row.
Measures MeasureRoute(const CostModel& model, std::span<const RouteEntry> route,
                      std::optional<int64_t> sequences);

// Everything that follows from plan.route and plan.objective: stages, times,
// concurrency, what binds. model.context() is the first of options.contexts.
// Definitions: README.md.
void FillNumbers(const CostModel& model, const PlanOptions& options,
                 Plan& plan);

}  // namespace millrace::planner
