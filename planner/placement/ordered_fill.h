#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/placement/judge.h"

namespace millrace::planner::placement {

// Contiguous routes over nodes in a given order. Each node takes all it can
// within the limits, which is best for that order (links that differ: nearly),
// and nodes that could take nothing are left out. O(nodes * log(layers)).
class OrderedFill {
 public:
  // Times are those of `rows` rows.
  OrderedFill(const Problem& problem, int64_t rows);

  [[nodiscard]] int64_t rows() const { return rows_; }
  // Layers that the first nodes of the order hold, at most `nodes_max` of them.
  int64_t Fill(std::span<const int64_t> order, const Limits& limits,
               int64_t nodes_max);
  // Of the last Fill, which has reached the last layer.
  [[nodiscard]] const Route& route() const { return route_; }
  // Entries of the order that the last Fill looked at.
  [[nodiscard]] size_t looked_at() const { return looked_at_; }
  // Nodes looked at by all calls: what a search has cost.
  [[nodiscard]] int64_t steps() const { return steps_; }

  // The route with the least cycle; nothing where the order holds no route.
  // `at_least_s`: no cycle is shorter.
  std::optional<Route> LeastCycle(std::span<const int64_t> order,
                                  int64_t sequences, int64_t nodes_max,
                                  double at_least_s);
  // The most sequences, from `low` on, which must fit, up to `high`.
  int64_t MostSequences(std::span<const int64_t> order, int64_t low,
                        int64_t high);
  // The route with the least loop within the limits, nodes left out where that
  // helps; all links taken as the default one. O(nodes * layers).
  std::optional<Route> LeastLoop(std::span<const int64_t> order,
                                 const Limits& limits);

  // Slowest node or hop.
  [[nodiscard]] double CycleOf(const Route& route) const {
    return problem_.CycleOf(route, costs_);
  }

 private:
  [[nodiscard]] int64_t FarthestEnd(const NodeKind& kind, size_t kind_index,
                                    int64_t begin, const Limits& limits) const;
  int64_t CutFor(int64_t node, double cycle_s);
  [[nodiscard]] double HopSeconds(int64_t cut, double byte_s) const;

  const Problem& problem_;
  const int64_t rows_;
  const Problem::RowCosts costs_;
  Route route_;
  size_t looked_at_ = 0;
  int64_t steps_ = 0;
};

}  // namespace millrace::planner::placement
