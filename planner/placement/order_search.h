#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "planner/placement/floors.h"
#include "planner/placement/judge.h"
#include "planner/placement/ordered_fill.h"

namespace millrace::planner::placement {

// Looks for good contiguous routes by hill climbing over orders of nodes: an
// order is better when its nodes reach farther within limits that are a hair
// tighter than those of the best route so far. Not exact. Deterministic: steps
// are counted, not seconds.
class OrderSearch {
 public:
  // Times are those of `rows` rows; all references outlive this.
  OrderSearch(const Problem& problem, const Floors& floors, Objective objective,
              int64_t rows, Judge& judge);

  // Offers what simple orders give: never worse than filling nodes greedily or
  // splitting evenly or by memory.
  void Begin();
  // Improves on it; stops after so many steps (one node looked at).
  void Climb(int64_t steps_max);

 private:
  void OfferOrder(const std::vector<int64_t>& order);
  // Changes `order` until its nodes hold all layers within the limits.
  bool Reach(std::vector<int64_t>& order, const Limits& limits,
             int64_t nodes_max);
  void LessCycle(int64_t sequences, int64_t nodes_max);
  void FewerNodes(const Limits& limits);
  void MoreSequences();
  void LessLoop(const Limits& limits);
  void LessEnergy();
  // The nodes of the best route, then all others of the widest order.
  std::vector<int64_t> BestOrder();
  void Mutate(std::vector<int64_t>& order, size_t used);
  [[nodiscard]] bool Spent() const { return fill_.steps() >= steps_end_; }
  int64_t Random(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }

  const Problem& problem_;
  const Floors& floors_;
  const Objective objective_;
  Judge& judge_;
  OrderedFill fill_;
  std::mt19937_64 random_;
  int64_t steps_end_ = 0;
  std::vector<int64_t> rest_;
};

}  // namespace millrace::planner::placement
