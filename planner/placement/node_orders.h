#pragma once

#include <cstdint>
#include <vector>

#include "planner/placement/ordered_fill.h"

namespace millrace::planner::placement {

// Orders to begin a search with: as in the cluster, the fastest first, the
// roomiest first, those that hold the most layers within a cycle first, those
// that do the most for a watt first. Never more nodes than a search can look
// at.
std::vector<std::vector<int64_t>> NodeOrders(const Problem& problem,
                                             int64_t rows, double cycle_s);

// Even and memory-proportional splits over the first nodes of an order: what
// people do by hand. They may not fit.
std::vector<Route> SimpleSplits(const Problem& problem,
                                const std::vector<int64_t>& order);

}  // namespace millrace::planner::placement
