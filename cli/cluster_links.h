#pragma once

#include <algorithm>
#include <cstdint>

#include "planner/cluster.h"

namespace millrace::cli {

// The link between two nodes of a cluster file: their own, else the default.
inline const planner::Link& LinkBetween(const planner::Cluster& cluster,
                                        int64_t a, int64_t b) {
  const auto own =
      std::find_if(cluster.links.begin(), cluster.links.end(),
                   [&](const planner::NodePairLink& link) {
                     return (link.node_a == a && link.node_b == b) ||
                            (link.node_a == b && link.node_b == a);
                   });
  return own == cluster.links.end() ? cluster.link_default : own->link;
}

}  // namespace millrace::cli
