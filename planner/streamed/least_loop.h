#pragma once

#include <optional>
#include <vector>

#include "planner/streamed/reach.h"

namespace millrace::planner::streamed {

// The route with the least loop of one row a pass, over all choices of up to
// `nodes_max` nodes; every link counts as the default one. Nothing where no
// route fits, or where there are too many choices and layers to look at. Rates
// are known.
std::optional<Route> LeastLoop(const StreamedNodes& nodes,
                               const std::vector<NodeKind>& kinds,
                               const NodeChoices& choices, int64_t nodes_max);

}  // namespace millrace::planner::streamed
