#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cli/planned_model.h"
#include "model/spec/stage_memory.h"

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

class Console;

// `plan MODEL --single-node`: one machine that reads experts from NVMe.
struct SingleNodeFlags {
  bool chosen = false;
  std::string memory;
  std::string experts = "keep";
  std::string trunk = "keep";
  std::string nvme_bandwidth;
  std::string memory_bandwidth;

  void Define(CLI::App& app);
  // UsageError where options of a single node are given without the flag.
  [[nodiscard]] absl::Status CheckUnused() const;
};

// What is asked of it.
struct SingleNodeWorkload {
  int64_t context = 0;
  int64_t sequences = 1;
  model::StageShape shape;  // of a stage with all layers
  std::string out;          // file for the plan as JSON; -: stdout, empty: none
};

// Prints the plan. Keys of the document: version, model {name, digest}, fits,
// verdict, context, sequences, memory_bytes, floor_bytes, floor {trunk_bytes,
// kv_bytes, state_bytes, scratch_bytes, read_buffer_bytes, working_set_bytes},
// experts, trunk (formats), records, records_per_token, record_bytes,
// bundle_bytes, bytes_per_cold_token, cache_records, cache_bytes, hit_rate,
// bytes_per_token, tokens_per_s (each {low, high}; the latter null where a
// bandwidth it needs is unknown), memory_bytes_per_token, advice, provenance.
// A budget below the floor is AnswerIsNo.
absl::Status PlanOnSingleNode(const PlannedModel& model,
                              const SingleNodeFlags& flags,
                              const SingleNodeWorkload& workload,
                              Console& console);

}  // namespace millrace::cli
