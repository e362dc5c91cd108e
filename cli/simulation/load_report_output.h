#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "coordinator/simulation/load_report.h"
#include "coordinator/simulation/load_simulation.h"
#include "coordinator/simulation/pipeline_of_plan.h"

namespace millrace::cli {

// A report and the load that it is of.
struct SimulatedLoad {
  std::string model;
  coordinator::LoadOptions options;
  coordinator::BeyondPlan beyond;
  bool rate_searched = false;  // the rate is the highest that meets the limits
  // More requests might show that a lower one is: all came at once.
  bool rate_unbounded = false;
  coordinator::LoadReport report;
};

// With the keys of vLLM's `bench serve`, times in milliseconds, and further
// ones. `date` as in there: 20260304-050607, local time.
Json LoadReportToJson(SimulatedLoad& load, const std::string& date);
// For people: the verdict, then latencies, throughput and nodes.
std::string LoadReportText(SimulatedLoad& load);

}  // namespace millrace::cli
