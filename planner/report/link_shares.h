#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner::report {

// One direction of a link that a route uses.
struct LinkShare {
  int64_t from = 0;  // nodes
  int64_t to = 0;
  int64_t hops = 0;  // of one pass
  // Of all hops of a pass with the plan's rows; nothing: unknown.
  std::optional<double> occupancy_s;
};

// In the order in which the route first uses them. The way back from the last
// node is left out: it carries token ids only.
std::vector<LinkShare> LinkSharesOf(const CostModel& model, const Plan& plan);

}  // namespace millrace::planner::report
