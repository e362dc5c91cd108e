#pragma once

#include <string>

#include "planner/cost_model.h"
#include "planner/report/page.h"

namespace millrace::planner::report {

// Parts of a page about the stages of a plan that fits, each with its heading.
std::string StageTable(const ReportInput& input, const CostModel& model);
std::string MemoryPicture(const ReportInput& input, const CostModel& model);
std::string CyclePicture(const ReportInput& input, const CostModel& model);

}  // namespace millrace::planner::report
