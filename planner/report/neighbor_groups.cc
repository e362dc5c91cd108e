#include "planner/report/neighbor_groups.h"

#include <algorithm>

namespace millrace::planner::report {

std::vector<NeighborGroup> GroupNeighbors(
    size_t count, const std::function<bool(size_t, size_t)>& alike) {
  std::vector<NeighborGroup> groups;
  for (size_t i = 0; i < count; ++i) {
    if (count > kShownSinglyMax && i > 0 && alike(groups.back().begin, i)) {
      groups.back().end = i + 1;
    } else {
      groups.push_back({i, i + 1, true});
    }
  }
  if (groups.size() <= kGroupsMax) {
    return groups;
  }
  groups.clear();
  const size_t length = (count + kGroupsMax - 1) / kGroupsMax;
  for (size_t begin = 0; begin < count; begin += length) {
    groups.push_back({begin, std::min(count, begin + length), false});
  }
  return groups;
}

}  // namespace millrace::planner::report
