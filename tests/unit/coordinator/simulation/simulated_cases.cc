#include "tests/unit/coordinator/simulation/simulated_cases.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace millrace::coordinator {

SimulatedPipeline PipelineOf(const std::vector<double>& pass_s) {
  SimulatedPipeline pipeline;
  for (size_t i = 0; i < pass_s.size(); ++i) {
    pipeline.nodes.push_back(StagePool{.name = absl::StrCat("n", i),
                                       .full_blocks = 1 << 20,
                                       .windows = {},
                                       .slots = 4096});
    pipeline.segments.push_back(
        SimulatedSegment{.node = static_cast<int64_t>(i),
                         .pass_s = pass_s[i],
                         .row_s = 1e-6,
                         .experts = {}});
  }
  pipeline.hops.resize(pass_s.size() - 1);
  pipeline.context = 1 << 20;
  pipeline.microbatches = static_cast<int64_t>(pass_s.size());
  return pipeline;
}

LoadOptions ClosedLoad(int64_t clients, int64_t requests, int64_t input_tokens,
                       int64_t output_tokens) {
  LoadOptions options;
  options.workload.arrivals.concurrency = clients;
  options.workload.requests = requests;
  options.workload.input.tokens = input_tokens;
  options.workload.output.tokens = output_tokens;
  return options;
}

LoadOptions OpenLoad(double rate, int64_t requests, int64_t input_tokens,
                     int64_t output_tokens) {
  LoadOptions options = ClosedLoad(0, requests, input_tokens, output_tokens);
  options.workload.arrivals.rate = rate;
  return options;
}

LoadReport Play(const SimulatedPipeline& pipeline, const LoadOptions& options) {
  const absl::Status valid = pipeline.Validate();
  EXPECT_TRUE(valid.ok()) << valid;
  LoadSimulation simulation(pipeline, options);
  absl::StatusOr<LoadReport> report = simulation.Run();
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : LoadReport{};
}

}  // namespace millrace::coordinator
