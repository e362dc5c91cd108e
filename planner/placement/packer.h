#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "planner/placement/ordered_fill.h"

namespace millrace::planner::placement {

// Interleaved routes as bin packing in two sizes, memory and time: layers go to
// nodes one by one, wherever they fit within the limits. Links are left out of
// account. Not exact. Deterministic: steps are counted, not seconds.
class Packer {
 public:
  // Times are those of `rows` rows.
  Packer(const Problem& problem, int64_t rows);

  // In which order layers are placed: the largest first.
  enum class LayerOrder { kMemory, kTime, kBoth };
  static constexpr int kLayerOrders = 3;
  enum class Fit {
    kFirst,  // the first node of the order with room
    kBest,   // of the nodes in use the fullest, else the next of the order
  };

  // Nothing where a layer finds no room on at most `nodes_max` nodes.
  std::optional<Route> Pack(std::span<const int64_t> order, LayerOrder layers,
                            Fit fit, const Limits& limits, int64_t nodes_max);
  // Starts from any route, over the first nodes of `order`, and moves and
  // exchanges layers until all nodes keep the limits, or the steps are spent.
  std::optional<Route> Repair(const Route& start,
                              std::span<const int64_t> order,
                              const Limits& limits, int64_t nodes_max,
                              int64_t steps_max);

  // Slowest node of a route.
  double SlowestNode(const Route& route);
  [[nodiscard]] int64_t steps() const { return steps_; }

 private:
  struct NodeLoad {
    Bytes bytes = 0;
    double seconds = 0;
    int64_t layers = 0;
  };
  [[nodiscard]] Bytes LayerBytes(int64_t layer, int64_t sequences) const;
  [[nodiscard]] double LayerSeconds(int64_t node, int64_t layer) const;
  [[nodiscard]] Bytes Room(int64_t node) const;
  [[nodiscard]] bool Holds(int64_t node, int64_t layer,
                           const Limits& limits) const;
  void Put(int64_t node, int64_t layer, int64_t sequences);
  void Take(int64_t node, int64_t layer, int64_t sequences);
  std::vector<int64_t> SortedLayers(LayerOrder order, int64_t sequences) const;
  // Where among the nodes of an order to begin to look for room.
  [[nodiscard]] size_t StartFor(std::span<const int64_t> order, int64_t layer,
                                int64_t before, size_t start,
                                const Limits& limits) const;
  int64_t FirstWithRoom(std::span<const int64_t> order, int64_t layer,
                        const Limits& limits, size_t* start,
                        bool may_open) const;
  int64_t FullestWithRoom(int64_t layer, const Limits& limits) const;
  // How far a node is beyond the limits; 0: within.
  [[nodiscard]] double Excess(int64_t node, const Limits& limits) const;
  // One change of a node that is beyond the limits, kept where it does not
  // make things worse.
  void TryChange(std::vector<int64_t>& place, std::span<const int64_t> nodes,
                 int64_t layer, const Limits& limits);
  [[nodiscard]] Route RouteOf(const std::vector<int64_t>& place) const;
  void Clear();
  int64_t Random(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }

  const Problem& problem_;
  const Problem::RowCosts costs_;
  std::mt19937_64 random_;
  std::vector<NodeLoad> loads_;  // [nodes]
  std::vector<int64_t> used_;
  int64_t steps_ = 0;
};

}  // namespace millrace::planner::placement
