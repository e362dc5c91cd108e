#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner::report {

// What a route does with so many sequences at one time.
struct ThroughputPoint {
  int64_t sequences = 0;  // rows x micro-batches
  int64_t rows = 0;
  int64_t microbatches = 0;
  double tokens_per_s = 0;
  double tpot_s = 0;
};

// One row in 1, 2, 4 ... micro-batches until they fill the pipeline, then 1, 2,
// 4 ... rows, and those of the plan, in as many micro-batches as fill it, up to
// `sequences_max` >= 1.
// Empty where times are unknown or where a pass takes no time.
std::vector<ThroughputPoint> ThroughputCurveOf(const CostModel& model,
                                               const Plan& plan,
                                               int64_t sequences_max);

}  // namespace millrace::planner::report
