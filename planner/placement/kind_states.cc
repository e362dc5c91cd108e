#include "planner/placement/kind_states.h"

#include <algorithm>

namespace millrace::planner::placement {
namespace {

// Counts per kind tried one after the other, and states times kinds kept: an
// answer in about a second. At a tenth, sixteen different nodes are too many.
constexpr int64_t kTriedMax = 4'000'000;
constexpr int64_t kKeptMax = 6'000'000;

}  // namespace

std::optional<KindStates> KindStates::Create(const Problem& problem) {
  KindStates states;
  if (!states.Fill(problem)) {
    return std::nullopt;
  }
  return states;
}

bool KindStates::Fill(const Problem& problem) {
  num_kinds_ = problem.kinds().size();
  std::vector<int64_t> most;
  std::vector<int64_t> strides;
  int64_t tried = 1;
  for (const NodeKind& kind : problem.kinds()) {
    most.push_back(std::min(kind.count(), problem.nodes_max()));
    strides.push_back(tried);
    if (tried > kTriedMax / (most.back() + 1)) {
      return false;
    }
    tried *= most.back() + 1;
  }
  std::vector<int32_t> place(static_cast<size_t>(tried), -1);
  std::vector<int64_t> digits(num_kinds_, 0);
  int64_t count = 0;
  double watts = 0;
  for (int64_t index = 0; index < tried; ++index) {
    if (count <= problem.nodes_max()) {
      if (static_cast<int64_t>(without_.size() + num_kinds_) > kKeptMax) {
        return false;
      }
      place[static_cast<size_t>(index)] = static_cast<int32_t>(count_.size());
      count_.push_back(static_cast<int32_t>(count));
      watts = 0;
      for (size_t kind = 0; kind < num_kinds_; ++kind) {
        watts += static_cast<double>(digits[kind]) * problem.kind(kind).power_w;
        without_.push_back(
            digits[kind] == 0
                ? -1
                : place[static_cast<size_t>(index - strides[kind])]);
      }
      watts_.push_back(watts);
    }
    for (size_t kind = 0; kind < num_kinds_; ++kind) {
      ++count;
      if (++digits[kind] <= most[kind]) {
        break;
      }
      count -= digits[kind];
      digits[kind] = 0;
    }
  }
  return true;
}

}  // namespace millrace::planner::placement
