#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/spec/model_spec.h"
#include "planner/cluster.h"
#include "planner/layer_costs.h"
#include "planner/plan.h"

namespace millrace::planner {

// Whether a run of layers fits a node and how long it takes there. Pure; the
// bytes are those that a stage worker will allocate.
class StageModel {
 public:
  StageModel(const model::ModelSpec& spec, const Cluster& cluster,
             const PlanOptions& options);

  [[nodiscard]] int64_t num_layers() const { return costs_.num_layers(); }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const LayerCosts& costs() const { return costs_; }

  // Bytes of the stage [begin, end): for `sequences` of `context` positions.
  [[nodiscard]] int64_t KvBytes(int64_t begin, int64_t end, int64_t context,
                                int64_t sequences) const;
  [[nodiscard]] int64_t ScratchBytes(int64_t begin, int64_t end) const;
  // Keys and values of one position in full-attention layers.
  [[nodiscard]] int64_t KvBytesPerToken(int64_t begin, int64_t end) const;
  // One vector per token across a cut.
  [[nodiscard]] int64_t hidden_bytes() const { return spec_.hidden_size * 4; }
  // Memory that the node has for weights, scratch and sequences.
  [[nodiscard]] int64_t Available(int64_t node) const;
  [[nodiscard]] bool Fits(int64_t node, int64_t begin, int64_t end) const;
  // Nothing when the node's bandwidth or compute is unknown.
  [[nodiscard]] std::optional<double> Seconds(int64_t node, int64_t begin,
                                              int64_t end, int64_t rows) const;

 private:
  [[nodiscard]] model::StageShape Shape(int64_t begin, int64_t end,
                                        int64_t context,
                                        int64_t sequences) const;

  const model::ModelSpec& spec_;
  const Cluster& cluster_;
  const PlanOptions& options_;
  const LayerCosts costs_;
  // KV of the sequences that must fit plus scratch, per [begin][end]; filled as
  // asked for, -1 before.
  mutable std::vector<int64_t> need_;
};

// The nodes of a contiguous placement, in the order of the route; each gets at
// least one layer.
struct Placement {
  std::vector<RouteEntry> route;
  bool exact = false;  // proven to have the least cycle time
};

// Least cycle time, then fewest nodes; nodes may be left out and come in any
// order. Exact while the multisets of node kinds are few (a rack of equal nodes
// always is), else by node order of speed with a bound on the gap. Nothing when
// the model does not fit.
std::optional<Placement> PlaceContiguous(const StageModel& stages,
                                         int64_t spare_nodes);

}  // namespace millrace::planner
