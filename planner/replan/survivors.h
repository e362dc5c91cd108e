#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/cluster.h"
#include "planner/plan.h"
#include "planner/replan/held_layers.h"

namespace millrace::planner::replan {

// A cluster without some of its nodes.
struct Survivors {
  Cluster cluster;
  std::vector<int64_t> index;  // [nodes before]: the new one, or kNobody
};

// `lost`: indices of nodes, in any order. Nodes that `spare` kept unused stand
// in for lost ones: so many fewer stay unused.
Survivors WithoutNodes(const Cluster& cluster, std::span<const int64_t> lost);

// Who of the survivors holds each of `layers` layers of a route.
std::vector<int64_t> HoldersOf(std::span<const RouteEntry> route,
                               const Survivors& survivors, int64_t layers);

}  // namespace millrace::planner::replan
