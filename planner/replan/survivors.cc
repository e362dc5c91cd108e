#include "planner/replan/survivors.h"

#include <algorithm>

namespace millrace::planner::replan {

Survivors WithoutNodes(const Cluster& cluster, std::span<const int64_t> lost) {
  Survivors survivors;
  survivors.index.assign(cluster.nodes.size(), 0);
  for (const int64_t node : lost) {
    survivors.index[static_cast<size_t>(node)] = kNobody;
  }
  Cluster& out = survivors.cluster;
  out.link_default = cluster.link_default;
  out.reserve_bytes = cluster.reserve_bytes;
  for (size_t i = 0; i < cluster.nodes.size(); ++i) {
    if (survivors.index[i] != kNobody) {
      survivors.index[i] = static_cast<int64_t>(out.nodes.size());
      out.nodes.push_back(cluster.nodes[i]);
    }
  }
  for (NodePairLink link : cluster.links) {
    link.node_a = survivors.index[static_cast<size_t>(link.node_a)];
    link.node_b = survivors.index[static_cast<size_t>(link.node_b)];
    if (link.node_a != kNobody && link.node_b != kNobody) {
      out.links.push_back(link);
    }
  }
  auto gone = static_cast<int64_t>(cluster.nodes.size() - out.nodes.size());
  for (Constraint rule : cluster.constraints) {
    const int64_t used = std::min(gone, rule.spare_nodes);
    gone -= used;
    rule.spare_nodes -= used;
    if (used == 0 || rule.spare_nodes > 0 || rule.first_layer.has_value()) {
      out.constraints.push_back(rule);
    }
  }
  return survivors;
}

std::vector<int64_t> HoldersOf(std::span<const RouteEntry> route,
                               const Survivors& survivors, int64_t layers) {
  std::vector<int64_t> holders(static_cast<size_t>(layers), kNobody);
  for (const RouteEntry& entry : route) {
    for (int64_t i = entry.first_layer; i <= entry.last_layer; ++i) {
      holders[static_cast<size_t>(i)] =
          survivors.index[static_cast<size_t>(entry.node)];
    }
  }
  return holders;
}

}  // namespace millrace::planner::replan
