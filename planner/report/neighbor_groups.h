#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace millrace::planner::report {

// Things [begin, end) that one row of a page stands for.
struct NeighborGroup {
  size_t begin = 0;
  size_t end = 0;
  bool alike = true;  // by the caller's measure; else they differ

  [[nodiscard]] size_t size() const { return end - begin; }
};

// So many things are shown one by one, and at most so many rows in all.
inline constexpr size_t kShownSinglyMax = 40;
inline constexpr size_t kGroupsMax = 200;

// Divides `count` things into at most kGroupsMax rows: each alone when there
// are few, else neighbors that are alike together, and where even those are too
// many, ranges of the same length.
std::vector<NeighborGroup> GroupNeighbors(
    size_t count, const std::function<bool(size_t, size_t)>& alike);

}  // namespace millrace::planner::report
