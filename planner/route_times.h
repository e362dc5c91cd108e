#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner {

// Times of a pass over a route as functions of the rows of a micro-batch. A
// node may stand in the route several times: its segments add up, and so do the
// hops that use one direction of a link. Definitions: README.md.
class RouteTimes {
 public:
  struct NodePass {
    int64_t node = 0;
    std::optional<PassCost> pass;  // nothing: a rate is missing
  };

  // The route covers all layers in order; `model` outlives the times.
  RouteTimes(const CostModel& model, std::span<const RouteEntry> route);

  // Whether every field is there that the times below need.
  [[nodiscard]] bool known() const { return known_; }
  // In the order in which the route meets them.
  [[nodiscard]] const std::vector<NodePass>& nodes() const { return nodes_; }

  // All of these need known() and rows >= 1.
  [[nodiscard]] double CycleSeconds(int64_t rows) const;
  [[nodiscard]] double LoopSeconds(int64_t rows) const;
  // Micro-batches that fill the pipeline, >= 1.
  [[nodiscard]] int64_t Microbatches(int64_t rows) const;
  // What sets the cycle: a node's time, or the link from a node.
  [[nodiscard]] Binding CycleBinding(int64_t rows) const;
  // The fewest rows that serve `sequences` at once.
  [[nodiscard]] int64_t RowsFor(int64_t sequences) const;

 private:
  struct LinkUse {
    int64_t from = 0;
    double row_s = 0;  // occupancy by one row of all hops over it
  };
  // Whether loop / cycle rises with the rows, of which there are so many that
  // all times are straight lines.
  [[nodiscard]] bool MoreRowsFillBetter(int64_t rows) const;
  [[nodiscard]] bool Serves(int64_t rows, int64_t sequences) const;
  [[nodiscard]] int64_t RowsOnStraightLines(int64_t first,
                                            int64_t sequences) const;

  void AddHops(std::span<const RouteEntry> route);

  const CostModel& model_;
  bool known_ = true;
  std::vector<NodePass> nodes_;
  std::vector<LinkUse> links_;
  PassCost sum_;            // of all nodes
  double latency_s_ = 0;    // of all hops and the way back
  double occupancy_s_ = 0;  // of all hops, by one row
};

}  // namespace millrace::planner
