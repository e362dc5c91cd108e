#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace millrace::planner {

// A cluster file as plain values, validated. What is missing there is missing
// here: nothing is invented.

struct Node {
  std::string name;
  int64_t memory_bytes = 0;                // what a stage may use in all
  std::optional<double> memory_bandwidth;  // bytes per second, > 0
  // Operations per second, > 0, by weight format; `default` for all others.
  std::map<std::string, double> compute;
  std::optional<double> nvme_bandwidth;  // bytes per second, > 0
  std::optional<int64_t> nvme_bytes;     // space
  std::optional<double> power_w;         // >= 0
  std::map<std::string, std::string> labels;

  // The rate for a weight format: its own, else the default; nothing where
  // neither is known.
  [[nodiscard]] std::optional<double> ComputeRate(
      const std::string& format) const;
};

inline constexpr char kComputeDefault[] = "default";

struct Link {
  std::optional<double> bandwidth;  // bytes per second, > 0
  std::optional<double> latency_s;  // >= 0
};

struct NodePairLink {
  int64_t node_a = 0;  // index into nodes
  int64_t node_b = 0;
  Link link;
};

struct Constraint {
  // Layers first..last, included, on nodes that carry all labels; or nodes left
  // unused.
  std::optional<int64_t> first_layer, last_layer;
  std::map<std::string, std::string> labels;
  int64_t spare_nodes = 0;
};

struct Cluster {
  std::vector<Node> nodes;
  Link link_default;
  std::vector<NodePairLink> links;  // both directions, replace the default
  int64_t reserve_bytes = 0;        // kept free on every node
  std::vector<Constraint> constraints;

  // Nodes that stay unused by all constraints together; may be more than there
  // are.
  [[nodiscard]] int64_t SpareNodes() const;
};

inline constexpr int64_t kNodesMax = 100'000;

}  // namespace millrace::planner
