#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/placement/floors.h"
#include "planner/placement/judge.h"
#include "planner/placement/packer.h"

namespace millrace::planner::placement {

// Looks for good interleaved routes: packs layers by several orders of nodes
// and layers within limits found by bisection, then tightens the limits of the
// best route a little and repairs it. Not exact. Deterministic.
class PackSearch {
 public:
  // Times are those of `rows` rows; all references outlive this.
  PackSearch(const Problem& problem, const Floors& floors, Objective objective,
             int64_t rows, Judge& judge);

  // Offers what packing in simple orders gives.
  void Begin();
  // Improves on the judge's best route, if there is one.
  void Improve(int64_t steps_max);

 private:
  using Order = std::vector<int64_t>;
  // Any of the ways to pack.
  std::optional<Route> PackAnyhow(const Order& order, const Limits& limits,
                                  int64_t nodes_max);
  void OfferLeastCycle(const Order& order, int64_t sequences,
                       int64_t nodes_max);
  int64_t OfferMostSequences(const Order& order);
  void FewerNodes(double cycle_s, int64_t steps_max);
  void LessCycle(int64_t sequences, int64_t nodes_max, int64_t steps_max);
  void MoreSequences(int64_t steps_max);
  // Nodes of the best route, those with the most layers first, then the rest.
  Order BestOrder() const;

  const Problem& problem_;
  const Floors& floors_;
  const Objective objective_;
  Judge& judge_;
  Packer packer_;
  std::vector<Order> orders_;
};

}  // namespace millrace::planner::placement
