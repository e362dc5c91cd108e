#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/costs.h"

namespace millrace::planner {

// What a plan is best at; the criteria of each are in criteria.h.
enum class Objective { kThroughput, kConcurrency, kLatency, kNodes, kEnergy };

// Which routes are considered. kAuto: the better of contiguous and interleaved,
// contiguous where it is as good. kStreamed: contiguous, of nodes that may read
// experts from NVMe (streamed/).
enum class PlacementKind { kAuto, kContiguous, kInterleaved, kStreamed };

// Positions, sequences and rows that a plan may be asked for, at most, and how
// many lengths at once.
inline constexpr int64_t kLengthMax = int64_t{1} << 30;
inline constexpr size_t kContextsMax = 1000;

// Micro-batches that a coordinator runs at once, at most.
inline constexpr int64_t kMicrobatchesRunMax = 4096;

// What a model is planned for; all numbers from 1 to kLengthMax.
struct PlanOptions {
  Objective objective = Objective::kThroughput;
  PlacementKind placement = PlacementKind::kAuto;
  std::vector<int64_t> contexts = {4096};  // the first one must fit
  std::optional<int64_t> concurrency;      // sequences that must fit; else 1
  std::optional<int64_t> prompt_len;
  std::optional<int64_t> output_len;
  std::optional<int64_t> chunk;  // prefill rows per pass, for TTFT; else 512

  // Sequences of the first context that must fit.
  [[nodiscard]] int64_t sequences() const { return concurrency.value_or(1); }
};

struct RouteEntry {
  int64_t node = 0;  // index into the cluster's nodes
  int64_t first_layer = 0;
  int64_t last_layer = 0;  // included

  [[nodiscard]] LayerRun run() const { return {first_layer, last_layer + 1}; }
};

// What a node of a streamed plan holds of its experts and reads of the others.
struct StreamedStage {
  int64_t experts = 0;  // of its layers
  int64_t experts_held = 0;
  double hit_share = 1;  // as if every expert were equally likely
  // Of a pass of the plan's rows, on average; nothing where these are unknown.
  std::optional<double> read_bytes;
  std::optional<double> read_s;  // a part of segment_s
};

// All that one node holds, in however many runs of layers.
struct PlanStage {
  int64_t node = 0;
  int64_t weights_bytes = 0;
  int64_t scratch_bytes = 0;  // activations, program and link buffers
  int64_t kv_bytes_per_token = 0;
  int64_t state_bytes_per_sequence = 0;
  int64_t free_bytes = 0;  // before any sequence
  std::optional<double> segment_s;
  int64_t kv_bytes = 0;        // pools for the sequences that must fit
  int64_t resident_bytes = 0;  // of the worker's process, once loaded
  std::optional<StreamedStage> streamed;  // of streamed plans
};

struct ContextConcurrency {
  int64_t context = 0;
  std::optional<int64_t> sequences;     // nothing: unbounded
  std::optional<int64_t> binding_node;  // nothing: nothing binds
};

enum class BindingKind { kMemory, kTime, kLink };

struct Binding {
  BindingKind kind = BindingKind::kMemory;
  std::optional<int64_t> node;  // the sending one for a link
};

struct Advice {
  std::string change;
  std::string effect;
  double gain = 0;  // by which advice is sorted
};

// Bounds no plan can beat; nothing where unknown.
struct Bounds {
  std::optional<double> cycle_s;
  std::optional<double> tokens_per_s;
  std::optional<int64_t> sequences;
  std::optional<int64_t> nodes_used;
  std::optional<double> gap;  // 1 - plan / bound; 0: proven best
};

// Where a model's layers go and what follows from it. Times are nothing where
// the cluster file lacks a number they need.
struct Plan {
  bool fits = false;
  std::string verdict;
  Objective objective = Objective::kThroughput;
  // The one chosen, never kAuto; of a plan that does not fit the one asked for.
  PlacementKind placement = PlacementKind::kContiguous;
  std::vector<RouteEntry> route;  // empty when it does not fit
  std::vector<PlanStage> stages;  // in the order in which the route meets them
  Binding binding;
  std::vector<ContextConcurrency> concurrency;
  std::optional<double> cycle_s;
  std::optional<double> loop_s;
  std::optional<int64_t> microbatches;
  std::optional<double> tokens_per_s;  // nothing too where a cycle takes 0 s
  std::optional<double> tokens_per_joule;  // of the nodes used
  std::optional<double> tpot_s;
  std::optional<double> ttft_s;
  // Sequences per micro-batch; nothing where unknown times decide it.
  std::optional<int64_t> rows;
  Bounds bounds;
  std::vector<Advice> advice;      // the largest effect first
  std::vector<std::string> notes;  // sentences about the numbers
};

}  // namespace millrace::planner
