#include "planner/replan/held_layers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace millrace::planner::replan {

HeldLayers::HeldLayers(const CostModel& model, std::vector<int64_t> holders)
    : model_(model), holders_(std::move(holders)), least_(holders_.size() + 1) {
  const ModelCosts& costs = model_.costs();
  for (size_t i = holders_.size(); i-- > 0;) {
    int64_t bytes = holders_[i] == kNobody ? costs.layers[i].weights_bytes : 0;
    // A node that holds the other end has the shared weights already; that of
    // layer 0 may be the one that takes the last layer.
    if (holders_[i] == kNobody && i + 1 == holders_.size()) {
      bytes += costs.last.weights_bytes - costs.shared_weights_bytes;
    }
    if (holders_[i] == kNobody && i == 0) {
      const bool other_end_held = holders_.back() != kNobody;
      bytes += costs.first.weights_bytes -
               (other_end_held ? costs.shared_weights_bytes : 0);
    }
    least_[i] = least_[i + 1] + bytes;
  }
}

int64_t HeldLayers::BytesToLoad(int64_t layer, int64_t node,
                                int64_t first_node) const {
  if (holder(layer) == node) {
    return 0;
  }
  const ModelCosts& costs = model_.costs();
  const int64_t last = model_.num_layers() - 1;
  int64_t bytes = costs.layers[static_cast<size_t>(layer)].weights_bytes;
  if (layer == 0) {
    bytes += costs.first.weights_bytes -
             (holder(last) == node ? costs.shared_weights_bytes : 0);
  }
  if (layer == last) {
    const bool has_first = holder(0) == node || first_node == node;
    bytes +=
        costs.last.weights_bytes - (has_first ? costs.shared_weights_bytes : 0);
  }
  return bytes;
}

int64_t HeldLayers::BytesOf(std::span<const RouteEntry> route) const {
  int64_t bytes = 0;
  for (const RouteEntry& entry : route) {
    for (int64_t i = entry.first_layer; i <= entry.last_layer; ++i) {
      bytes += BytesToLoad(i, entry.node, route.front().node);
    }
  }
  return bytes;
}

Moved HeldLayers::MovedBy(std::span<const RouteEntry> route) const {
  Moved moved;
  std::map<int64_t, int64_t> by_node;
  for (const RouteEntry& entry : route) {
    for (int64_t i = entry.first_layer; i <= entry.last_layer; ++i) {
      if (holder(i) != entry.node) {
        const int64_t bytes = BytesToLoad(i, entry.node, route.front().node);
        moved.layers.push_back({i, entry.node});
        moved.bytes += bytes;
        by_node[entry.node] += bytes;
      }
    }
  }
  const Cluster& cluster = model_.cluster();
  for (const auto& [node, bytes] : by_node) {
    const std::optional<double>& disk =
        cluster.nodes[static_cast<size_t>(node)].nvme_bandwidth;
    const std::optional<double>& rate =
        disk.has_value() ? disk : cluster.link_default.bandwidth;
    if (bytes > 0 && !rate.has_value()) {
      moved.load_s.reset();
    } else if (bytes > 0 && moved.load_s.has_value()) {
      moved.load_s =
          std::max(*moved.load_s, static_cast<double>(bytes) / *rate);
    }
  }
  return moved;
}

}  // namespace millrace::planner::replan
