#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/placement/layer_types.h"

namespace millrace::planner::placement {

// What no plan can beat, whatever its placement: relaxations that forget the
// order of layers, most links and that nodes hold whole layers only.
class Floors {
 public:
  explicit Floors(const Problem& problem);

  // No cycle is shorter, of one row or more.
  [[nodiscard]] double cycle_s() const { return cycle_s_; }
  // No loop is shorter, of one row or more.
  [[nodiscard]] double loop_s() const { return loop_s_; }
  // Rows over cycle of no plan is more; infinity where a cycle may take no
  // time.
  [[nodiscard]] double tokens_per_s() const { return tokens_per_s_; }
  [[nodiscard]] double tokens_per_joule() const { return tokens_per_joule_; }
  // No plan holds so many sequences on fewer nodes; nothing: no plan at all.
  [[nodiscard]] std::optional<int64_t> NodesFor(int64_t sequences) const;
  [[nodiscard]] int64_t nodes() const {
    return nodes_;
  }  // of those that must fit
  // No plan that holds problem.sequences() holds more than this. Some layer
  // keeps something per sequence.
  [[nodiscard]] int64_t most_sequences() const { return most_sequences_; }

 private:
  [[nodiscard]] double CycleOf(int64_t rows) const;
  [[nodiscard]] double SlowestLayer(int64_t rows) const;
  [[nodiscard]] double SharedWork(int64_t rows) const;
  [[nodiscard]] double CountedLayers(int64_t rows) const;
  [[nodiscard]] double LeastHops() const;
  void FillRates();
  [[nodiscard]] int64_t MostSequences() const;
  [[nodiscard]] double RoughCycleOf(int64_t rows) const;
  [[nodiscard]] double LoopOf(int64_t rows) const;
  // Over all layers, the least weight times seconds that any node takes.
  [[nodiscard]] double SumOfLeast(
      int64_t rows, const std::function<double(const NodeKind&)>& weight) const;
  [[nodiscard]] Bytes TypeBytes(const LayerType& type, int64_t sequences) const;
  [[nodiscard]] SizeLadder MemoryLadder(int64_t sequences,
                                        Bytes at_least) const;
  [[nodiscard]] std::optional<int64_t> FewestFor(
      double total, const std::function<double(const NodeKind&)>& value) const;
  [[nodiscard]] std::vector<Bytes> Thresholds(int64_t sequences) const;
  [[nodiscard]] int64_t DualBound(int64_t sequences, Bytes room) const;

  const Problem& problem_;
  const std::vector<LayerType> types_;
  std::vector<size_t> by_room_;  // kinds, the roomiest first
  int64_t nodes_ = 1;
  int64_t most_sequences_ = 0;
  double least_hops_s_ = 0;
  double cycle_s_ = 0;
  double loop_s_ = 0;
  double tokens_per_s_ = 0;
  double tokens_per_joule_ = 0;
};

}  // namespace millrace::planner::placement
