#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/expert_records.h"
#include "planner/model_sheet.h"
#include "planner/plan.h"

namespace millrace::planner {

// One machine that holds everything but the experts in memory and reads experts
// from NVMe as the router asks for them, through a cache of whole records.

struct SingleNodeOptions {
  int64_t memory_bytes = 0;  // hard budget of the process
  int64_t context = 0;
  int64_t sequences = 1;
  CostsShape shape;  // KV format, prefill chunk
  StoredAs experts = StoredAs::kKeep;
  StoredAs trunk = StoredAs::kKeep;  // not kVq3
  // Program and activations of all layers.
  int64_t scratch_bytes = 0;
  // Bytes per second, where known.
  std::optional<double> nvme_bandwidth;
  std::optional<double> memory_bandwidth;
};

struct Range {
  double low = 0;
  double high = 0;
};

// What a machine must hold before it can decode at all.
struct MemoryFloor {
  int64_t trunk_bytes = 0;  // all weights but routed experts, with codebooks
  int64_t kv_bytes = 0;
  int64_t state_bytes = 0;
  int64_t scratch_bytes = 0;
  int64_t read_buffer_bytes = 0;
  int64_t working_set_bytes = 0;  // records that one token wants of a layer
  [[nodiscard]] int64_t total() const {
    return trunk_bytes + kv_bytes + state_bytes + scratch_bytes +
           read_buffer_bytes + working_set_bytes;
  }
};

struct SingleNodePlan {
  bool fits = false;
  std::string verdict;
  MemoryFloor floor;
  int64_t records = 0;               // of all layers; 0: no routed experts
  int64_t records_per_token = 0;     // wanted by one token
  int64_t record_bytes = 0;          // the largest
  int64_t bundle_bytes = 0;          // on disk: trunk and all records
  int64_t cold_bytes_per_token = 0;  // read when nothing is cached
  // Slots of the cache, the working set among them; 0 where it does not fit.
  int64_t cache_records = 0;
  int64_t cache_bytes = 0;
  // Share of a token's records that are in the cache: as if every expert were
  // equally likely, and as measured on another model's routing.
  Range hit_rate;
  Range bytes_per_token;              // read from NVMe, fewest to most
  double memory_bytes_per_token = 0;  // read from memory
  // Nothing where a bandwidth it needs is unknown. Where only the memory's is,
  // what reading allows at most.
  std::optional<Range> tokens_per_s;
  std::vector<Advice> advice;
};

// InputError where experts cannot be stored as asked. Pure.
absl::StatusOr<SingleNodePlan> PlanSingleNode(const ModelSheet& sheet,
                                              const SingleNodeOptions& options);

// Share of a token's records expected in a cache that holds this share of all
// records, on a model whose experts are not equally popular.
double MeasuredHitRate(double cached_share);

}  // namespace millrace::planner
