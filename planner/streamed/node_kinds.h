#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cost_model.h"

namespace millrace::planner::streamed {

// Nodes that nothing tells apart but their names.
struct NodeKind {
  std::vector<int64_t> nodes;
  // [layers] first layer >= each that may not stand there; empty: all may.
  std::vector<int32_t> forbidden_from;

  [[nodiscard]] int64_t count() const {
    return static_cast<int64_t>(nodes.size());
  }
};

// Nodes that stand in links of their own are told apart too.
std::vector<NodeKind> KindsOf(const CostModel& model);

// Choices of so many nodes of each kind, numbered so that one with a node less
// comes before.
class NodeChoices {
 public:
  // Of each kind at most `nodes_max`. Nothing where choices times kinds are too
  // many to look at each a hundred times.
  static std::optional<NodeChoices> Create(const std::vector<NodeKind>& kinds,
                                           int64_t nodes_max);

  [[nodiscard]] int64_t size() const {
    return static_cast<int64_t>(counts_.size());
  }
  [[nodiscard]] size_t num_kinds() const { return strides_.size(); }
  // Nodes in all.
  [[nodiscard]] int64_t count(int64_t choice) const {
    return counts_[static_cast<size_t>(choice)];
  }
  // The choice with one node of the kind less; -1: it has none.
  [[nodiscard]] int64_t Without(int64_t choice, size_t kind) const {
    return choice / strides_[kind] % bases_[kind] == 0
               ? -1
               : choice - strides_[kind];
  }

 private:
  std::vector<int32_t> counts_;
  std::vector<int64_t> strides_, bases_;  // [kinds]
};

}  // namespace millrace::planner::streamed
