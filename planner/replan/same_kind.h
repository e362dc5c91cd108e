#pragma once

#include "planner/placement/judge.h"
#include "planner/replan/held_layers.h"

namespace millrace::planner::replan {

// The route with nodes that nothing tells apart exchanged, so that they keep
// more of what they hold: the largest overlaps first. As good by every
// criterion.
placement::Route WithHoldersFirst(const placement::Problem& problem,
                                  const HeldLayers& held,
                                  const placement::Route& route);

}  // namespace millrace::planner::replan
