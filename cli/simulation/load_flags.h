#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/simulation/load_files.h"
#include "coordinator/simulation/load_report.h"
#include "coordinator/simulation/load_simulation.h"
#include "coordinator/simulation/pipeline_of_plan.h"
#include "coordinator/simulation/simulated_pipeline.h"

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

// The load that the options of `simulate` ask for, as they were given.
struct LoadFlags {
  std::optional<double> rate;
  std::optional<int64_t> concurrency;
  std::string trace;
  double burstiness = 1;
  std::optional<int64_t> requests;
  int64_t input_len = 512;
  int64_t output_len = 128;
  double range_ratio = 0;
  std::string slo;
  std::string faults;
  uint64_t seed = 0;
  bool find_rate = false;
  bool sequence_reads = false;
  std::string coordinator_time;

  void Define(CLI::App& app);
  // UsageError where options are missing, exclude each other or are out of
  // range; reads the files. `go_on`: as ParseTrace asks.
  [[nodiscard]] absl::StatusOr<coordinator::LoadOptions> Options(
      const coordinator::SimulatedPipeline& pipeline,
      const coordinator::GoOn& go_on = {}) const;
  // What is to be counted beyond the plan's times.
  [[nodiscard]] absl::StatusOr<coordinator::BeyondPlan> Beyond() const;

 private:
  [[nodiscard]] absl::Status Check() const;
  [[nodiscard]] absl::Status CheckLengths(
      const coordinator::Workload& workload,
      const coordinator::SimulatedPipeline& pipeline) const;
};

// "ttft=2s,tpot=50ms,e2el=10s", each at most once; an empty text is no limit.
absl::StatusOr<coordinator::ServiceLimits> ParseServiceLimits(
    absl::string_view text);

}  // namespace millrace::cli
