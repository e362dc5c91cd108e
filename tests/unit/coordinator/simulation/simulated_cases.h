#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/simulation/load_report.h"
#include "coordinator/simulation/load_simulation.h"
#include "coordinator/simulation/simulated_pipeline.h"
#include "coordinator/simulation/workload.h"

namespace millrace::coordinator {

// One node a segment, named n0, n1 ..., ample memory, links that cost nothing.
// A pass takes pass_s of each, and a microsecond a row.
SimulatedPipeline PipelineOf(const std::vector<double>& pass_s);

// `requests` of this length, all from `clients` that wait for the answer.
LoadOptions ClosedLoad(int64_t clients, int64_t requests, int64_t input_tokens,
                       int64_t output_tokens);
// The same at a rate.
LoadOptions OpenLoad(double rate, int64_t requests, int64_t input_tokens,
                     int64_t output_tokens);

// The report; fails the test where there is none.
LoadReport Play(const SimulatedPipeline& pipeline, const LoadOptions& options);

}  // namespace millrace::coordinator
