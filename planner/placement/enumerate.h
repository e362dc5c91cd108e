#pragma once

#include <cstdint>

#include "planner/placement/judge.h"

namespace millrace::planner::placement {

// Every contiguous or interleaved route, but for those that differ only by
// equal nodes and those that cannot beat the best one that `judge` has:
// exhaustive search with bounds. The judge ends up with the best route. False
// where it gave up after `steps_max` partial routes; the judge then has the
// best one seen.
bool EnumerateRoutes(const Problem& problem, bool interleaved,
                     int64_t steps_max, Judge& judge);

}  // namespace millrace::planner::placement
