#pragma once

#include <string>

#include "planner/cost_model.h"
#include "planner/report/page.h"

namespace millrace::planner::report {

// Parts of a page about what a plan that fits does with more or longer
// sequences, each with its heading.
std::string ContextPicture(const ReportInput& input, const CostModel& model);
std::string ThroughputPicture(const ReportInput& input, const CostModel& model);

}  // namespace millrace::planner::report
