#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/placement/judge.h"
#include "planner/placement/kind_states.h"

namespace millrace::planner::placement {

// For every choice of nodes by kind: how far from layer 0 they reach when each
// takes a run of layers within the limits, in the best order. Reaching farther
// never hurts, so that one number per choice is enough. Contiguous placement
// with equal links. O(states * kinds + kinds * layers) a call of Fill.
class KindReach {
 public:
  // Times are those of `rows` rows. All arguments outlive this.
  KindReach(const Problem& problem, const KindStates& states, int64_t rows);

  void Fill(const Limits& limits);
  // Fewest nodes that hold all layers within the limits last filled; nothing
  // where none do or they are more than `nodes_max`.
  [[nodiscard]] std::optional<int64_t> FewestNodes(int64_t nodes_max) const;
  // A route of so few nodes.
  [[nodiscard]] Route RouteOf(int64_t nodes) const;

  // The route with the least cycle of those with at most `nodes_max` nodes and
  // room for so many sequences, within 1e-12; nothing where there is none.
  std::optional<Route> LeastCycle(int64_t sequences, int64_t nodes_max,
                                  double at_least_s);
  // The most sequences that fit: `low` fit, and no more than `high`.
  int64_t MostSequences(int64_t low, int64_t high);

  // Slowest node or hop of a route.
  [[nodiscard]] double CycleOf(const Route& route) const {
    return problem_.CycleOf(route, costs_);
  }

 private:
  const Problem& problem_;
  const KindStates& states_;
  const Problem::RowCosts costs_;
  std::vector<std::vector<int32_t>> ends_;  // [kinds][layers + 1], by begin
  std::vector<int32_t> reach_;              // [states]
};

// Where a run of layers that begins at each layer must end on a node of this
// kind, at the latest: [layers + 1]. `cut_ok` [layers + 1]: places where a run
// may end; the model's end is one.
std::vector<int32_t> FarthestEnds(const Problem& problem, size_t kind,
                                  const Problem::RowCosts& costs,
                                  const Limits& limits);

}  // namespace millrace::planner::placement
