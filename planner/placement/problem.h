#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/numeric/int128.h"
#include "planner/cost_model.h"
#include "planner/criteria.h"
#include "planner/plan.h"

namespace millrace::planner::placement {

using Route = std::vector<RouteEntry>;

// Exact sums of bytes: a model's layers, times its sequences, exceed 64 bits.
using Bytes = absl::int128;

// Nodes that no rule and no criterion tells apart. A node that an entry of
// `links` names is a kind of its own.
struct NodeKind {
  std::vector<int64_t> nodes;  // in the order of the cluster
  Bytes room = 0;              // for weights, scratch and sequences; may be < 0
  double byte_s = 0;           // seconds to read a byte
  std::vector<double> op_s;    // seconds an operation, by weight format
  double power_w = 0;
  size_t rules = 0;  // index of the label constraints it breaks

  [[nodiscard]] int64_t count() const {
    return static_cast<int64_t>(nodes.size());
  }
};

// What a search asks for of every node: a cycle time and sequences.
struct Limits {
  double cycle_s = 0;
  int64_t sequences = 1;
};

// Whether times follow the cluster file, or all nodes count as equally fast and
// links as taking no time.
enum class Speeds { kGiven, kEqual };

// A cluster, a model and a workload in the form that searches read fastest:
// node kinds and prefix sums. Times are 0 where the criteria do not need them.
// Immutable but for At(); the cost model outlives it. One thread.
class Problem {
 public:
  Problem(const CostModel& model, const std::vector<Criterion>& criteria,
          std::optional<int64_t> concurrency, Speeds speeds = Speeds::kGiven);

  [[nodiscard]] const CostModel& model() const { return model_; }
  [[nodiscard]] std::span<const Criterion> criteria() const {
    return criteria_;
  }
  [[nodiscard]] int64_t num_layers() const { return layers_; }
  // Nodes that a plan may use at most.
  [[nodiscard]] int64_t nodes_max() const { return nodes_max_; }
  [[nodiscard]] const std::vector<NodeKind>& kinds() const { return kinds_; }
  [[nodiscard]] const NodeKind& kind(size_t index) const {
    return kinds_[index];
  }
  [[nodiscard]] size_t kind_of(int64_t node) const {
    return kind_of_[static_cast<size_t>(node)];
  }
  // Sequences that must fit.
  [[nodiscard]] int64_t sequences() const { return concurrency_.value_or(1); }
  [[nodiscard]] std::optional<int64_t> concurrency() const {
    return concurrency_;
  }
  // Whether a criterion is a time or a rate.
  [[nodiscard]] bool timed() const { return timed_; }
  // Whether rows per micro-batch depend on the route.
  [[nodiscard]] bool rows_vary() const {
    return timed_ && speeds_ == Speeds::kGiven && sequences() > 1;
  }
  [[nodiscard]] bool equal_links() const { return equal_links_; }

  // Bytes of one sequence in layers [begin, end), and of their weights.
  [[nodiscard]] Bytes Need(int64_t begin, int64_t end) const {
    return need_[Index(end)] - need_[Index(begin)];
  }
  [[nodiscard]] Bytes Weights(int64_t begin, int64_t end) const {
    return weights_[Index(end)] - weights_[Index(begin)];
  }
  // Weights counted twice where one node holds both ends of the model.
  [[nodiscard]] Bytes shared_weights() const { return shared_weights_; }
  // The most scratch that any node needs.
  [[nodiscard]] Bytes scratch_most() const { return scratch_most_; }
  // All that a node with the run [begin, end) and no other needs for n
  // sequences. Never less for a longer run.
  [[nodiscard]] Bytes RunBytes(int64_t begin, int64_t end, int64_t n) const;
  // First layer >= `layer` that may not stand on a node of this kind.
  [[nodiscard]] int64_t ForbiddenFrom(size_t kind, int64_t layer) const {
    return forbidden_from_[kinds_[kind].rules][Index(layer)];
  }

  // Costs of a pass of `rows` rows: prefix sums over the layers.
  struct RowCosts {
    std::vector<double> bytes;             // [layers + 1]
    std::vector<std::vector<double>> ops;  // [formats][layers + 1]
    std::vector<double> hop_bytes;         // [layers], before each layer
  };
  // The reference holds until another number of rows is asked for.
  [[nodiscard]] const RowCosts& At(int64_t rows) const;

  // Seconds of a pass over [begin, end) on a node of this kind.
  [[nodiscard]] double Seconds(const NodeKind& kind, const RowCosts& costs,
                               int64_t begin, int64_t end) const {
    double seconds =
        (costs.bytes[Index(end)] - costs.bytes[Index(begin)]) * kind.byte_s;
    for (size_t i = 0; i < costs.ops.size(); ++i) {
      seconds += (costs.ops[i][Index(end)] - costs.ops[i][Index(begin)]) *
                 kind.op_s[i];
    }
    return seconds;
  }
  // Seconds a byte takes over a link, and its latency.
  struct LinkTimes {
    double byte_s = 0;
    double latency_s = 0;
  };
  [[nodiscard]] const LinkTimes& default_link() const { return default_link_; }
  [[nodiscard]] LinkTimes LinkBetween(int64_t a, int64_t b) const;
  // Slowest run or hop of a route.
  [[nodiscard]] double CycleOf(const Route& route, const RowCosts& costs) const;

 private:
  static size_t Index(int64_t i) { return static_cast<size_t>(i); }
  void SumLayers();
  void FillKinds();
  std::vector<size_t> FillRules();
  [[nodiscard]] LinkTimes TimesOf(const Link& link) const;

  const CostModel& model_;
  const std::vector<Criterion> criteria_;
  const std::optional<int64_t> concurrency_;
  const Speeds speeds_;
  const int64_t layers_;
  int64_t nodes_max_ = 0;
  bool timed_ = false;
  bool equal_links_ = true;
  std::vector<Bytes> weights_, need_;  // [layers + 1]
  Bytes shared_weights_ = 0;
  Bytes scratch_most_ = 0;
  bool has_scratch_ = false;
  mutable std::vector<int64_t> run_scratch_;  // [begin][end]; -1: not asked yet
  std::vector<std::vector<int64_t>> forbidden_from_;  // [rules][layers + 1]
  std::vector<NodeKind> kinds_;
  std::vector<size_t> kind_of_;  // [nodes]
  LinkTimes default_link_;
  mutable int64_t rows_of_costs_ = 0;
  mutable RowCosts row_costs_;
};

}  // namespace millrace::planner::placement
