#pragma once

#include <string>

#include "base/json.h"
#include "planner/plan_reader.h"
#include "planner/replan/replan.h"

namespace millrace::cli {

// The plan as `plan --json` writes it, and `moved`; the user guide has the
// keys. Of a plan that does not fit `moved` is null.
Json ReplannedJson(const planner::PlanFile& file,
                   const planner::replan::Replanned& replanned);
// The same and `gain`.
Json PlanForLoadJson(const planner::PlanFile& file,
                     const planner::PlanOptions& options,
                     const planner::replan::PlanForLoad& planned);

// For people; `lost`: the names as they were given.
std::string ReplannedText(const std::string& lost,
                          const planner::replan::Replanned& replanned);
std::string PlanForLoadText(const planner::Cluster& cluster,
                            const planner::replan::PlanForLoad& planned);

}  // namespace millrace::cli
