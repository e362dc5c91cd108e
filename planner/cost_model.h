#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "planner/cluster.h"
#include "planner/costs.h"

namespace millrace::planner {

// What a pass over some layers takes on one node, as a function of the rows of
// its micro-batch. Sums over layers are sums of these.
struct PassCost {
  double fixed_s = 0;  // weights that any pass reads, and those of one row
  double row_s = 0;    // operations of one row
  // Reading one expert in every layer of an expert class.
  std::array<double, kExpertClassesMax> expert_s = {};

  PassCost& operator+=(const PassCost& other);
};

// What runs of layers need and take on the nodes of a cluster: every question
// about one run is answered from prefix sums, in a time that does not depend on
// its length. Sums of bytes are exact. Immutable; `costs` and `cluster` outlive
// it and have passed their codecs (sums fit int64_t). Definitions: README.md.
class CostModel {
 public:
  // `context`: positions of the sequences that must fit.
  CostModel(const ModelCosts& costs, const Cluster& cluster, int64_t context,
            ScratchFunction scratch = {});

  [[nodiscard]] const ModelCosts& costs() const { return costs_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] int64_t context() const { return context_; }
  [[nodiscard]] int64_t num_layers() const {
    return static_cast<int64_t>(costs_.layers.size());
  }
  [[nodiscard]] int64_t num_nodes() const {
    return static_cast<int64_t>(cluster_.nodes.size());
  }

  // Bytes of weights, with what stands with the ends of the model. Of several
  // runs on one node: shared weights once.
  [[nodiscard]] int64_t WeightsBytes(LayerRun run) const;
  [[nodiscard]] int64_t WeightsBytes(std::span<const LayerRun> runs) const;
  [[nodiscard]] int64_t ScratchBytes(std::span<const LayerRun> runs) const;
  // Of layers that keep every position.
  [[nodiscard]] int64_t KvBytesPerToken(LayerRun run) const;
  [[nodiscard]] int64_t StateBytes(LayerRun run) const;
  // All that one sequence of context() positions keeps: KV in whole blocks,
  // windows, state.
  [[nodiscard]] absl::int128 SequenceBytes(LayerRun run) const;
  // The same for another length; its time grows with the run.
  [[nodiscard]] absl::int128 SequenceBytesAt(LayerRun run,
                                             int64_t context) const;

  // Memory that a node has for weights, scratch and sequences; may be negative.
  [[nodiscard]] int64_t Available(int64_t node) const;
  // Whether a node holds these runs with `sequences` of context() positions.
  [[nodiscard]] bool Fits(int64_t node, std::span<const LayerRun> runs,
                          int64_t sequences) const;
  [[nodiscard]] bool Fits(int64_t node, LayerRun run, int64_t sequences) const {
    return Fits(node, {&run, 1}, sequences);
  }
  // Whether the label constraints let these layers stand on a node.
  [[nodiscard]] bool Allows(int64_t node, LayerRun run) const;

  // Nothing when the node lacks a rate that the run needs.
  [[nodiscard]] std::optional<PassCost> Pass(int64_t node, LayerRun run) const;
  // Such a rate, as a cluster file names it; empty when there is none.
  [[nodiscard]] std::string MissingRate(int64_t node, LayerRun run) const;
  [[nodiscard]] double Seconds(const PassCost& pass, int64_t rows) const;
  // What of it does not depend on the rows when they read every expert.
  [[nodiscard]] double FixedSecondsOfMany(const PassCost& pass) const;
  // Whether reading depends on the rows.
  [[nodiscard]] bool has_experts() const { return !classes_.empty(); }
  // From so many rows on every expert is read: Seconds() is the straight line
  // FixedSecondsOfMany() + rows * row_s.
  [[nodiscard]] int64_t rows_that_read_all() const {
    return rows_that_read_all_;
  }
  // Relative time of a run on nodes of unknown speed, in bytes: a processor
  // does about ten operations while it reads a byte of weights.
  [[nodiscard]] double NominalCost(LayerRun run) const;

  [[nodiscard]] const Link& LinkBetween(int64_t a, int64_t b) const;
  // Bytes of one row across a cut before `layer`.
  [[nodiscard]] double CutBytes(int64_t layer) const;

 private:
  struct ExpertClass {
    int64_t count = 0;
    int64_t used = 0;
    std::vector<double> bytes;  // prefix sums of one expert's bytes
  };
  struct FormatSum {
    std::string format;
    std::vector<double> flops;  // prefix sums
  };

  [[nodiscard]] double RateOf(int64_t node, size_t format) const {
    return rates_[static_cast<size_t>(node) * formats_.size() + format];
  }
  void AddExperts(size_t layer);
  void AddFlops(size_t layer, double flops);
  void FillRates();

  const ModelCosts& costs_;
  const Cluster& cluster_;
  const int64_t context_;
  const ScratchFunction scratch_;
  // Prefix sums [layers + 1], ends included.
  std::vector<int64_t> weights_, kv_, state_;
  std::vector<absl::int128> sequence_;
  std::vector<double> bytes_;
  std::vector<FormatSum> formats_;  // the first: the default rate
  std::vector<ExpertClass> classes_;
  int64_t rows_that_read_all_ = 1;
  std::vector<double> rates_;  // [nodes][formats], 0 where unknown
  absl::flat_hash_map<std::pair<int64_t, int64_t>, int64_t> links_;
};

}  // namespace millrace::planner
