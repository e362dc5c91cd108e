#pragma once

#include <cstdint>

#include "planner/placement/judge.h"

namespace millrace::planner::placement {

// Improves the judge's best route by small changes, each measured in full: with
// links that differ, rows that follow the route, and every criterion. Keeps
// changes that make nothing worse. Contiguous routes stay contiguous unless
// `interleaved`. Does nothing where there is no route. Deterministic: it stops
// after about `steps_max` route entries measured.
void PolishRoute(const Problem& problem, bool interleaved, int64_t steps_max,
                 Judge& judge);

}  // namespace millrace::planner::placement
