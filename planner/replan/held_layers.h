#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner::replan {

inline constexpr int64_t kNobody = -1;

struct MovedLayer {
  int64_t layer = 0;
  int64_t to = 0;  // node
};

// What a route makes its nodes load that they do not hold.
struct Moved {
  int64_t bytes = 0;               // weights, those of the ends included
  std::vector<MovedLayer> layers;  // ascending
  // Until the last node has its layers: each reads its own from its disk, or
  // over a link as quick as link_default where the disk is not known. Nothing
  // where neither is.
  std::optional<double> load_s = 0.0;
};

// Which node holds the weights of which layer before a plan is changed. Of a
// tied head a node holds the shared weights with either end. Immutable; the
// cost model outlives it.
class HeldLayers {
 public:
  // `holders`: [layers], a node of the model's cluster or kNobody.
  HeldLayers(const CostModel& model, std::vector<int64_t> holders);

  [[nodiscard]] int64_t holder(int64_t layer) const {
    return holders_[static_cast<size_t>(layer)];
  }
  [[nodiscard]] const std::vector<int64_t>& holders() const { return holders_; }

  // What `node` loads to hold a layer, with what stands with it at the ends;
  // `first_node` holds layer 0 in the new route.
  [[nodiscard]] int64_t BytesToLoad(int64_t layer, int64_t node,
                                    int64_t first_node) const;
  // No route can load less: the layers that nobody holds.
  [[nodiscard]] int64_t LeastBytes() const { return least_.front(); }
  // The same of layers from `layer` on; [0, layers].
  [[nodiscard]] int64_t LeastBytesFrom(int64_t layer) const {
    return least_[static_cast<size_t>(layer)];
  }

  // Of a route that covers all layers in order.
  [[nodiscard]] int64_t BytesOf(std::span<const RouteEntry> route) const;
  [[nodiscard]] Moved MovedBy(std::span<const RouteEntry> route) const;

 private:
  const CostModel& model_;
  const std::vector<int64_t> holders_;
  std::vector<int64_t> least_;  // [layers + 1]
};

}  // namespace millrace::planner::replan
