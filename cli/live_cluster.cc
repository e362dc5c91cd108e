#include "cli/live_cluster.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "cli/bench/statistics.h"
#include "cli/check/live_nodes.h"
#include "cli/cluster_links.h"

namespace millrace::cli {
namespace {

// Pairs grow with the square, a second each.
constexpr size_t kLinkedNodesMax = 16;

// A node of the cluster and where it answers.
struct LiveNode {
  size_t index = 0;
  transport::Endpoint address;
};

class Asker {
 public:
  Asker(LiveCluster& out, bool given, const std::atomic<bool>& cancelled)
      : out_(out), given_(given), cancelled_(cancelled) {}

  absl::Status FindNodes(const std::vector<transport::Endpoint>& nodes);
  absl::Status MeasureNodes();
  absl::Status MeasureMissingLinks();

 private:
  absl::Status Place(const transport::Endpoint& address,
                     const control::NodeDescription& description);
  [[nodiscard]] bool HasLink(size_t a, size_t b) const;

  LiveCluster& out_;
  const bool given_;
  const std::atomic<bool>& cancelled_;
  std::vector<LiveNode> live_;
};

absl::Status Asker::Place(const transport::Endpoint& address,
                          const control::NodeDescription& description) {
  std::vector<planner::Node>& nodes = out_.cluster.nodes;
  const auto found = std::find_if(
      nodes.begin(), nodes.end(),
      [&](const planner::Node& node) { return node.name == description.name; });
  const auto index = static_cast<size_t>(found - nodes.begin());
  const bool twice =
      std::any_of(live_.begin(), live_.end(),
                  [&](const LiveNode& node) { return node.index == index; });
  if (twice) {
    return UsageError("--workers",
                      absl::StrCat("two nodes are called ", description.name),
                      "give every worker a --name of its own");
  }
  if (found == nodes.end()) {
    if (given_) {
      return absl::OkStatus();  // not one of the file's
    }
    planner::Node node;
    node.name = description.name;
    node.memory_bytes =
        description.memory_bytes > 0
            ? description.memory_bytes
            : description.memory_available_bytes + description.resident_bytes;
    nodes.push_back(std::move(node));
    out_.measured.push_back(
        absl::StrCat("nodes.", description.name, ".memory"));
  }
  live_.push_back({index, address});
  return absl::OkStatus();
}

absl::Status Asker::FindNodes(const std::vector<transport::Endpoint>& nodes) {
  for (const NodeAnswer& answer : DescribeNodes(nodes, cancelled_)) {
    MILLRACE_RETURN_IF_ERROR(answer.description.status());
    MILLRACE_ASSIGN_OR_RETURN(const transport::Endpoint address,
                              transport::ParseEndpoint(answer.address));
    MILLRACE_RETURN_IF_ERROR(Place(address, *answer.description));
  }
  if (live_.empty()) {
    return UsageError("--workers", "none has a name of the cluster file",
                      "name workers and nodes alike");
  }
  return absl::OkStatus();
}

absl::Status Asker::MeasureNodes() {
  std::vector<LiveNode> lacking;
  std::vector<transport::Endpoint> addresses;
  for (const LiveNode& node : live_) {
    const planner::Node& known = out_.cluster.nodes[node.index];
    if (!known.memory_bandwidth.has_value() || known.compute.empty()) {
      lacking.push_back(node);
      addresses.push_back(node.address);
    }
  }
  const auto rates = MeasureNodesAt(addresses, cancelled_);
  for (size_t i = 0; i < rates.size(); ++i) {
    planner::Node& node = out_.cluster.nodes[lacking[i].index];
    if (!rates[i].ok()) {
      return WithObject(rates[i].status(), node.name);
    }
    const std::string key = absl::StrCat("nodes.", node.name);
    if (!node.memory_bandwidth.has_value()) {
      node.memory_bandwidth = rates[i]->memory_bandwidth;
      out_.measured.push_back(absl::StrCat(key, ".memory_bandwidth"));
    }
    if (node.compute.empty()) {
      node.compute.insert(rates[i]->compute.begin(), rates[i]->compute.end());
      out_.measured.push_back(absl::StrCat(key, ".compute"));
    }
  }
  return absl::OkStatus();
}

bool Asker::HasLink(size_t a, size_t b) const {
  const planner::Link& link = LinkBetween(out_.cluster, static_cast<int64_t>(a),
                                          static_cast<int64_t>(b));
  return link.bandwidth.has_value() || link.latency_s.has_value();
}

absl::Status Asker::MeasureMissingLinks() {
  if (live_.size() > kLinkedNodesMax) {
    return absl::OkStatus();  // unknown, and the plan says so
  }
  std::vector<NodePair> pairs;
  std::vector<planner::NodePairLink> links;
  for (size_t i = 0; i < live_.size(); ++i) {
    for (size_t j = i + 1; j < live_.size(); ++j) {
      if (!HasLink(live_[i].index, live_[j].index)) {
        pairs.push_back({live_[i].address, live_[j].address});
        links.push_back({static_cast<int64_t>(live_[i].index),
                         static_cast<int64_t>(live_[j].index),
                         {}});
      }
    }
  }
  const auto rounds = MeasureLinks(pairs, cancelled_);
  for (size_t i = 0; i < rounds.size(); ++i) {
    planner::NodePairLink& link = links[i];
    const std::string key = absl::StrCat(
        "links.", out_.cluster.nodes[static_cast<size_t>(link.node_a)].name,
        ".", out_.cluster.nodes[static_cast<size_t>(link.node_b)].name);
    if (!rounds[i].ok()) {
      return WithObject(rounds[i].status(), key);
    }
    link.link.bandwidth = std::min(Median(rounds[i]->bandwidth_out),
                                   Median(rounds[i]->bandwidth_in));
    link.link.latency_s = Median(rounds[i]->latency_s);
    out_.cluster.links.push_back(link);
    out_.measured.push_back(key);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LiveCluster> AskCluster(
    const std::optional<planner::Cluster>& given,
    const std::vector<transport::Endpoint>& nodes,
    const std::atomic<bool>& cancelled) {
  LiveCluster out;
  out.cluster = given.value_or(planner::Cluster());
  Asker asker(out, given.has_value(), cancelled);
  MILLRACE_RETURN_IF_ERROR(asker.FindNodes(nodes));
  MILLRACE_RETURN_IF_ERROR(asker.MeasureNodes());
  MILLRACE_RETURN_IF_ERROR(asker.MeasureMissingLinks());
  return out;
}

}  // namespace millrace::cli
