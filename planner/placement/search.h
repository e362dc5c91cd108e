#pragma once

#include "planner/placement/floors.h"
#include "planner/placement/judge.h"
#include "planner/placement/kind_search.h"

namespace millrace::planner::placement {

// Searches for the best contiguous route; the judge ends up with it.
Proof SearchContiguous(const Problem& problem, const Floors& floors,
                       Objective objective, Judge& judge);

// Searches for a better route of any number of runs a node than the one that
// the judge has. Contiguous routes count among these.
Proof SearchInterleaved(const Problem& problem, const Floors& floors,
                        Objective objective, Judge& judge);

// Whether the judge's best route meets what no route can beat.
Proof ProofByFloors(const Problem& problem, const Floors& floors,
                    const Judge& judge);

}  // namespace millrace::planner::placement
