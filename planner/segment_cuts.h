#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace millrace::planner {

// Seconds (or any unit) that stage `stage` takes for layers [begin, end);
// nothing when it cannot hold them.
using SegmentTime = std::function<std::optional<double>(
    int64_t stage, int64_t begin, int64_t end)>;

// Cuts [0, num_layers) into one run for each of `num_stages` stages, in their
// order, so that the slowest is as fast as it can be, and among such cuts the
// stage times have the least sum of squares. Exact, by dynamic programming:
// O(num_stages * num_layers^2). Nothing when no cut is possible.
// Returns the first layer of every stage, ascending from 0.
std::optional<std::vector<int64_t>> CutSegments(int64_t num_layers,
                                                int64_t num_stages,
                                                const SegmentTime& time);

}  // namespace millrace::planner
