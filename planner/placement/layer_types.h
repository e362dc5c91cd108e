#pragma once

#include <cstdint>
#include <vector>

#include "planner/placement/problem.h"

namespace millrace::planner::placement {

// Layers that weigh, keep and cost the same.
struct LayerType {
  int64_t layer = 0;  // the first of them
  int64_t count = 0;
};

// In the order in which they first appear.
std::vector<LayerType> LayerTypesOf(const Problem& problem);

// Layers by size: how many of the smallest ones some room holds.
class SizeLadder {
 public:
  // Sizes and how often each comes; those of no size come first.
  explicit SizeLadder(std::vector<std::pair<double, int64_t>> sizes);
  [[nodiscard]] int64_t CountWithin(double room) const;

 private:
  struct Rung {
    double size = 0;
    int64_t count = 0;    // of this size
    double before = 0;    // sum of all smaller ones
    int64_t counted = 0;  // number of all smaller ones
  };
  std::vector<Rung> rungs_;
};

}  // namespace millrace::planner::placement
