#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/plan.h"
#include "planner/streamed/node_kinds.h"
#include "planner/streamed/streamed_nodes.h"

namespace millrace::planner::streamed {

using Route = std::vector<RouteEntry>;

// Routes whose every run and hop stays within a cycle time. Part of a run that
// is within it is too, so that for a choice of nodes one number is enough: how
// far they reach from layer 0 when each takes all it can. While choices by kind
// are few all are looked at; else nodes are taken in the order of how many
// layers they take. Keeps work space between calls: one thread.
class Reach {
 public:
  // All outlive it.
  Reach(const StreamedNodes& nodes, const std::vector<NodeKind>& kinds,
        int64_t nodes_max);

  // Whether all choices of nodes are looked at.
  [[nodiscard]] bool exact() const { return choices_.has_value(); }
  [[nodiscard]] const std::optional<NodeChoices>& choices() const {
    return choices_;
  }
  // Runs looked at by one call of Within, about.
  [[nodiscard]] int64_t cost() const { return cost_; }
  // The route of the fewest nodes, up to `nodes_max`, whose passes of `rows`
  // take at most `cycle_s` everywhere; links count as the fastest there is.
  // Nothing where there is none.
  [[nodiscard]] std::optional<Route> Within(double cycle_s, int64_t rows,
                                            int64_t nodes_max);
  // The slowest run or hop of a route, in the same way.
  [[nodiscard]] double CycleOf(const Route& route, int64_t rows) const;
  // Seconds of a hop before `layer`, without latency.
  [[nodiscard]] double HopSeconds(int64_t layer, int64_t rows) const;

 private:
  [[nodiscard]] bool IsWithin(size_t kind, LayerRun run, double cycle_s,
                              int64_t rows) const;
  void FillCuts(double cycle_s, int64_t rows);
  void FillEnds(double cycle_s, int64_t rows);
  [[nodiscard]] int32_t FarthestFrom(size_t kind, int32_t begin, double cycle_s,
                                     int64_t rows) const;
  [[nodiscard]] std::optional<Route> ByCounts(int64_t nodes_max);
  [[nodiscard]] Route RouteOf(int64_t choice) const;
  [[nodiscard]] std::optional<Route> ByStrength(double cycle_s, int64_t rows,
                                                int64_t nodes_max) const;

  const StreamedNodes& nodes_;
  const std::vector<NodeKind>& kinds_;
  const int32_t layers_;
  const double fastest_byte_s_;  // over a link
  int64_t cost_ = 0;
  const std::optional<NodeChoices> choices_;
  std::vector<int32_t> reach_;  // [choices]
  std::vector<int32_t> cuts_;   // [layers + 1] the last quick cut up to each
  std::vector<std::vector<int32_t>> ends_;  // [kinds][layers + 1]
};

}  // namespace millrace::planner::streamed
