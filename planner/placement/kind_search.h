#pragma once

#include <cstdint>

#include "planner/placement/floors.h"
#include "planner/placement/judge.h"
#include "planner/placement/kind_states.h"

namespace millrace::planner::placement {

// What a search knows of the judge's best route.
struct Proof {
  bool all = false;    // no route is better
  bool first = false;  // none is better by the first criterion
};

// The best contiguous route where links are equal, by choices of nodes by kind.
// Exact where rows do not depend on the route; else the first criterion of
// `nodes` and `concurrency` is, and times are those of `rows` rows.
Proof SearchByKinds(const Problem& problem, const Floors& floors,
                    const KindStates& states, Objective objective, int64_t rows,
                    Judge& judge);

}  // namespace millrace::planner::placement
