#pragma once

#include <string>

#include "planner/cluster.h"
#include "planner/plan.h"

namespace millrace::cli {

// A plan for people: the verdict, a table of stages, what binds, what would
// help.
std::string PlanTable(const planner::Plan& plan,
                      const planner::Cluster& cluster);

}  // namespace millrace::cli
