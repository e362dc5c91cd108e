#include "planner/placement/layer_types.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace millrace::planner::placement {

std::vector<LayerType> LayerTypesOf(const Problem& problem) {
  using Key = std::tuple<Bytes, Bytes, double, double, std::string, int64_t,
                         int64_t, double, bool>;
  std::map<Key, size_t> places;
  std::vector<LayerType> types;
  const ModelCosts& costs = problem.model().costs();
  for (int64_t i = 0; i < problem.num_layers(); ++i) {
    const LayerCost& layer = costs.layers[static_cast<size_t>(i)];
    // What stands with the ends of the model makes these layers their own.
    const bool end = i == 0 || i + 1 == problem.num_layers();
    const Key key = {problem.Weights(i, i + 1),
                     problem.Need(i, i + 1),
                     layer.bytes_per_token,
                     layer.flops_per_token,
                     layer.format,
                     layer.experts.count,
                     layer.experts.used,
                     layer.experts.bytes_each,
                     end};
    const auto [found, is_new] = places.emplace(key, types.size());
    if (is_new || end) {
      types.push_back({i, 1});
    } else {
      ++types[found->second].count;
    }
  }
  return types;
}

SizeLadder::SizeLadder(std::vector<std::pair<double, int64_t>> sizes) {
  std::sort(sizes.begin(), sizes.end());
  Rung next;
  for (const auto& [size, count] : sizes) {
    next.size = size;
    next.count = count;
    rungs_.push_back(next);
    next.before += size * static_cast<double>(count);
    next.counted += count;
  }
}

int64_t SizeLadder::CountWithin(double room) const {
  // The last rung of which all smaller ones fit.
  const auto above = std::upper_bound(
      rungs_.begin(), rungs_.end(), room,
      [](double value, const Rung& rung) { return value < rung.before; });
  if (above == rungs_.begin()) {
    return 0;
  }
  const Rung& rung = *(above - 1);
  if (rung.size <= 0) {
    return rung.counted + rung.count;
  }
  // A hair more: sums in another order may be less.
  const double fitting =
      std::floor((room - rung.before) / rung.size * (1 + 1e-12) + 1e-12);
  return rung.counted + static_cast<int64_t>(
                            std::min(fitting, static_cast<double>(rung.count)));
}

}  // namespace millrace::planner::placement
