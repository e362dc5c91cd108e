#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/placement/problem.h"

namespace millrace::planner::placement {

// All ways to choose nodes by kind: how many of each, no more than a plan may
// use. States come after those that have one node less.
class KindStates {
 public:
  // Nothing where they are too many.
  static std::optional<KindStates> Create(const Problem& problem);

  [[nodiscard]] size_t size() const { return count_.size(); }
  [[nodiscard]] size_t num_kinds() const { return num_kinds_; }
  // Nodes of a state.
  [[nodiscard]] int64_t count(size_t state) const { return count_[state]; }
  // The state with one node of this kind less; -1 where it has none.
  [[nodiscard]] int64_t Without(size_t state, size_t kind) const {
    return without_[state * num_kinds_ + kind];
  }
  [[nodiscard]] double watts(size_t state) const { return watts_[state]; }

 private:
  KindStates() = default;
  bool Fill(const Problem& problem);

  size_t num_kinds_ = 0;
  std::vector<int32_t> count_;
  std::vector<double> watts_;
  std::vector<int32_t> without_;  // [states][kinds]
};

}  // namespace millrace::planner::placement
