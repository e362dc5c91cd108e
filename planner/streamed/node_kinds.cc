#include "planner/streamed/node_kinds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace millrace::planner::streamed {
namespace {

std::vector<int32_t> ForbiddenFrom(const CostModel& model, int64_t node) {
  const bool bound = std::any_of(
      model.cluster().constraints.begin(), model.cluster().constraints.end(),
      [](const Constraint& one) { return one.first_layer.has_value(); });
  if (!bound) {
    return {};
  }
  const int64_t layers = model.num_layers();
  std::vector<int32_t> from(static_cast<size_t>(layers));
  auto next = static_cast<int32_t>(layers);
  for (int64_t layer = layers; layer-- > 0;) {
    if (!model.Allows(node, {layer, layer + 1})) {
      next = static_cast<int32_t>(layer);
    }
    from[static_cast<size_t>(layer)] = next;
  }
  return from;
}

// Choices times kinds that are looked at: a few milliseconds a turn.
constexpr int64_t kChoicesMax = 400'000;

}  // namespace

std::vector<NodeKind> KindsOf(const CostModel& model) {
  const Cluster& cluster = model.cluster();
  std::vector<int64_t> named(cluster.nodes.size(), -1);
  for (const NodePairLink& pair : cluster.links) {
    named[static_cast<size_t>(pair.node_a)] = pair.node_a;
    named[static_cast<size_t>(pair.node_b)] = pair.node_b;
  }
  using Key = std::tuple<int64_t, std::optional<double>,
                         std::map<std::string, double>, std::optional<double>,
                         std::optional<int64_t>, std::optional<double>,
                         std::map<std::string, std::string>, int64_t>;
  std::map<Key, size_t> places;
  std::vector<NodeKind> kinds;
  for (size_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    const auto [found, is_new] =
        places.emplace(Key{node.memory_bytes, node.memory_bandwidth,
                           node.compute, node.nvme_bandwidth, node.nvme_bytes,
                           node.power_w, node.labels, named[i]},
                       kinds.size());
    const auto index = static_cast<int64_t>(i);
    if (is_new) {
      kinds.push_back({{}, ForbiddenFrom(model, index)});
    }
    kinds[found->second].nodes.push_back(index);
  }
  return kinds;
}

std::optional<NodeChoices> NodeChoices::Create(
    const std::vector<NodeKind>& kinds, int64_t nodes_max) {
  NodeChoices out;
  const auto num_kinds = static_cast<int64_t>(kinds.size());
  int64_t choices = 1;
  for (const NodeKind& kind : kinds) {
    out.strides_.push_back(choices);
    out.bases_.push_back(std::min(kind.count(), nodes_max) + 1);
    if (choices > kChoicesMax / num_kinds / out.bases_.back()) {
      return std::nullopt;
    }
    choices *= out.bases_.back();
  }
  out.counts_.resize(static_cast<size_t>(choices), 0);
  for (int64_t choice = 1; choice < choices; ++choice) {
    size_t kind = 0;
    while (out.Without(choice, kind) < 0) {
      ++kind;
    }
    out.counts_[static_cast<size_t>(choice)] =
        static_cast<int32_t>(out.count(out.Without(choice, kind)) + 1);
  }
  return out;
}

}  // namespace millrace::planner::streamed
