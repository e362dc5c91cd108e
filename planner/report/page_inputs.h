#pragma once

#include <string>

#include "planner/report/page.h"

namespace millrace::planner::report {

// What the plan was made from: the nodes of the cluster and the links without
// an entry of their own, each number with its mark.
std::string InputsTable(const ReportInput& input);

}  // namespace millrace::planner::report
