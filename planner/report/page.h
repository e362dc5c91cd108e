#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "planner/cluster.h"
#include "planner/cost_model.h"
#include "planner/costs.h"
#include "planner/plan.h"

namespace millrace::planner::report {

inline constexpr int64_t kContextShownMax = int64_t{1} << 20;

// A number that the plan gives, and the same as the cluster does it.
struct Comparison {
  double predicted = 0;
  double measured = 0;
};

// What running the plan's sequences on its cluster showed.
struct MeasuredPlan {
  int64_t sequences = 0;
  Comparison tokens_per_s;
  Comparison tpot_s;
};

// A plan and all that it was made from. Borrows; pointers are not null.
struct ReportInput {
  const Plan* plan = nullptr;
  const ModelCosts* costs = nullptr;
  const Cluster* cluster = nullptr;
  const PlanOptions* options = nullptr;
  ScratchFunction scratch = {};
  // The plan document's: key to measured, estimated or given.
  const boost::json::object* provenance = nullptr;
  // Longest sequence of the model, for the picture of lengths.
  int64_t context_max = kContextShownMax;
  std::optional<MeasuredPlan> measured = std::nullopt;
};

// The plan as one HTML page with its pictures in it. It loads nothing and runs
// nothing, and every text from a file is escaped. Below 2 MB for any number of
// stages: rows for neighbors are put together and say so. Pure.
std::string HtmlReport(const ReportInput& input);

}  // namespace millrace::planner::report
