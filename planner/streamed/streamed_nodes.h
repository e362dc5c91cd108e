#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/cost_model.h"
#include "planner/expert_cache.h"

namespace millrace::planner::streamed {

// InputError naming `object` where the experts of a layer are more than its
// weights, or larger than any: to be called before StreamedNodes.
[[nodiscard]] absl::Status CheckExperts(const ModelCosts& costs,
                                        absl::string_view object);

// What a node holds of one run of layers, and what it reads.
struct Holding {
  ExpertDemand demand;
  // Experts in memory; all of them where nothing is streamed.
  int64_t experts_held = 0;
  // Resident: trunk and experts; where it streams, whole slots and buffers for
  // reads.
  int64_t weights_bytes = 0;
  // Share of wanted experts that are in memory when all are equally likely.
  double hit_share = 1;

  [[nodiscard]] bool streams() const { return experts_held < demand.records; }
};

// Nodes that may hold fewer experts than their layers have, and read the others
// from NVMe: memory and time of any run of layers on any node, from prefix
// sums. A longer run never needs less memory or time.
// `model` outlives it. Remembers scratch: one thread. Definitions: README.md.
class StreamedNodes {
 public:
  // `sequences` of model.context() positions fit beside weights and scratch.
  StreamedNodes(const CostModel& model, int64_t sequences);

  [[nodiscard]] const CostModel& model() const { return model_; }
  [[nodiscard]] int64_t sequences() const { return sequences_; }
  // Whether any layer has experts to stream.
  [[nodiscard]] bool has_experts() const { return records_.back() > 0; }

  // Nothing where the node has not even room for the floor.
  [[nodiscard]] std::optional<Holding> Hold(int64_t node, LayerRun run) const;
  // The least that any node needs for the run: trunk, scratch, sequences,
  // buffers for reads and the experts of one token in one layer.
  [[nodiscard]] absl::int128 FloorBytes(LayerRun run) const;
  [[nodiscard]] int64_t TrunkBytes(LayerRun run) const;
  [[nodiscard]] int64_t RecordBytes(int64_t layer) const {
    return record_[0][static_cast<size_t>(layer)];
  }
  // Weights of the layer without its routed experts, without what stands with
  // the ends of the model.
  [[nodiscard]] int64_t LayerTrunkBytes(int64_t layer) const;

  // Seconds that a pass of `rows` reads from NVMe; 0 where nothing is streamed.
  [[nodiscard]] double ReadSeconds(int64_t node, LayerRun run,
                                   const Holding& holding, int64_t rows) const;
  // Bytes that it reads, on average.
  [[nodiscard]] double ReadBytes(LayerRun run, const Holding& holding,
                                 int64_t rows) const;
  // Computing and reading one after the other: nothing is assumed to hide.
  // Nothing where a rate is missing.
  [[nodiscard]] std::optional<double> Seconds(int64_t node, LayerRun run,
                                              const Holding& holding,
                                              int64_t rows) const;

 private:
  // Layers of one number of experts and of chosen ones.
  struct RecordClass {
    int64_t count = 0;
    int64_t used = 0;
    std::vector<double> bytes;  // [layers + 1] prefix sums of one record
  };

  void AddLayer(size_t layer);
  [[nodiscard]] ExpertDemand DemandOf(LayerRun run) const;
  [[nodiscard]] int64_t ScratchBytes(LayerRun run) const;

  const CostModel& model_;
  const int64_t sequences_;
  std::vector<int64_t> expert_bytes_, records_;  // [layers + 1] prefix sums
  // [levels][layers]: the largest of 2^level layers from here on.
  std::vector<std::vector<int64_t>> record_, used_;
  std::vector<RecordClass> classes_;
  // [begin][end], -1: not asked yet; empty where layers are too many.
  mutable std::vector<int64_t> scratch_;
};

}  // namespace millrace::planner::streamed
