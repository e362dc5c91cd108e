#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/check/checked_plan.h"
#include "cli/check/findings.h"
#include "transport/endpoint.h"

namespace millrace::cli {

// Asks many nodes at once, each call with a deadline of its own. Errors are
// part of the answers; after an interrupt (`cancelled`) they mean nothing.

// "HOST:PORT,HOST:PORT"; UsageError naming `option`: not one, or one off
// loopback without `insecure`.
absl::StatusOr<std::vector<transport::Endpoint>> ParseNodes(
    absl::string_view option, const std::string& text, bool insecure);

// In the order of the nodes.
std::vector<NodeAnswer> DescribeNodes(
    const std::vector<transport::Endpoint>& nodes,
    const std::atomic<bool>& cancelled);

std::vector<absl::StatusOr<control::ModelDescription>> FindModels(
    const std::vector<transport::Endpoint>& nodes, const std::string& model,
    const std::atomic<bool>& cancelled);

// Each measures itself, all at once.
std::vector<absl::StatusOr<control::NodeRates>> MeasureNodesAt(
    const std::vector<transport::Endpoint>& nodes,
    const std::atomic<bool>& cancelled);

struct NodePair {
  transport::Endpoint from, to;
};
// As many at once as have no node in common, so that none slows another one.
std::vector<absl::StatusOr<transport::LinkRounds>> MeasureLinks(
    const std::vector<NodePair>& links, const std::atomic<bool>& cancelled);

}  // namespace millrace::cli
