#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner::report {

// What the pools of one stage hold, whatever the other stages do.
struct StageCurve {
  int64_t node = 0;
  int64_t num_alike = 1;           // stages with this very curve
  std::vector<int64_t> sequences;  // by ContextCurves::contexts
};

// How many sequences a plan holds at one time, by their length.
struct ContextCurves {
  std::vector<int64_t> contexts;  // ascending powers of two
  // Of the whole plan; nothing: unbounded.
  std::vector<std::optional<int64_t>> sequences;
  std::vector<StageCurve> stages;  // different ones, the tightest first
  int64_t num_other_stages = 0;    // with pools, that have no curve here
};

inline constexpr size_t kStageCurvesMax = 8;

// From 1024 or the shortest context of the plan up to `context_max`.
ContextCurves ContextCurvesOf(const CostModel& model, const Plan& plan,
                              int64_t context_max);

}  // namespace millrace::planner::report
