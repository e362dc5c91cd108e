#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/placement/judge.h"
#include "planner/placement/kind_states.h"

namespace millrace::planner::placement {

// Best way to place the layers before each cut on each choice of nodes by kind,
// every node of it in use: dynamic programming over (nodes, layers). Contiguous
// placement with equal links.
class KindPaths {
 public:
  // States times cuts that are kept at most.
  static bool Affordable(const Problem& problem, const KindStates& states);

  // Times are those of `rows` rows. All arguments outlive this.
  KindPaths(const Problem& problem, const KindStates& states, int64_t rows);

  // The route with the least loop of all with `nodes_min` to `nodes_max` nodes
  // within the limits. O(states * kinds * layers).
  std::optional<Route> LeastLoop(const Limits& limits, int64_t nodes_min,
                                 int64_t nodes_max);
  // The route with the least cycle times power. `known`: of some route; only
  // better ones are looked for. O(states * kinds * layers^2).
  std::optional<Route> LeastEnergy(int64_t sequences, double known);

 private:
  enum class Combine { kSum, kMax };
  // Where a run may begin, and what it costs but for the end of the run.
  struct Start {
    size_t begin = 0;
    double cost = 0;
  };

  void FillTimes(const Limits& limits);
  void AddSums(size_t state, size_t kind);
  void AddMaxima(size_t state, size_t kind, double cost_max);
  [[nodiscard]] double HopSeconds(int64_t cut) const;
  // Cost of a run and the hop before it.
  [[nodiscard]] double CostOf(size_t kind, int64_t begin, int64_t end,
                              Combine combine, double before) const;
  Route Trace(size_t state, Combine combine) const;
  double* Row(size_t state) { return cost_.data() + state * width_; }
  [[nodiscard]] const double* Row(size_t state) const {
    return cost_.data() + state * width_;
  }

  const Problem& problem_;
  const KindStates& states_;
  const Problem::RowCosts costs_;
  const size_t width_;  // cuts: layers + 1
  double cycle_max_ = 0;
  std::vector<std::vector<int32_t>> ends_;    // [kinds][layers + 1]
  std::vector<std::vector<double>> seconds_;  // prefix sums, [kinds][width]
  std::vector<double> cost_;                  // [states][width]
  std::vector<Start> window_;                 // work space
};

}  // namespace millrace::planner::placement
