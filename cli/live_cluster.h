#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cluster.h"
#include "transport/endpoint.h"

namespace millrace::cli {

// A cluster with what was measured on live nodes.
struct LiveCluster {
  planner::Cluster cluster;
  // Keys of the numbers that were measured, as `nodes.a.memory_bandwidth` and
  // `links.a.b`; all others stood in the file.
  std::vector<std::string> measured;
};

// Takes what a cluster file lacks from the nodes that answer at `nodes` and
// have the names of it: bandwidth and rates where either is missing, and links
// that neither stand there nor have a default. Without a file (`given` empty)
// the cluster is those nodes, with the memory that they may use. Links are
// measured between all pairs of up to 16 live nodes. What is in the file stays.
// kUnavailable and its like, naming the node, where one does not answer;
// UsageError where none of the names is in the file.
absl::StatusOr<LiveCluster> AskCluster(
    const std::optional<planner::Cluster>& given,
    const std::vector<transport::Endpoint>& nodes,
    const std::atomic<bool>& cancelled);

}  // namespace millrace::cli
