#include "planner/placement/packer.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace millrace::planner::placement {
namespace {

// Up to so many nodes times layers all nodes are looked at for each layer; with
// more only those near the last one that had room.
constexpr size_t kPairsMax = 200'000;
constexpr size_t kLookBack = 64;

size_t Index(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

Packer::Packer(const Problem& problem, int64_t rows)
    : problem_(problem),
      costs_(problem.At(rows)),
      random_(1),
      loads_(Index(problem.model().num_nodes())) {}

Bytes Packer::LayerBytes(int64_t layer, int64_t sequences) const {
  return problem_.Weights(layer, layer + 1) +
         problem_.Need(layer, layer + 1) * sequences;
}

double Packer::LayerSeconds(int64_t node, int64_t layer) const {
  return problem_.Seconds(problem_.kind(problem_.kind_of(node)), costs_, layer,
                          layer + 1);
}

Bytes Packer::Room(int64_t node) const {
  return problem_.kind(problem_.kind_of(node)).room - problem_.scratch_most();
}

bool Packer::Holds(int64_t node, int64_t layer, const Limits& limits) const {
  const NodeLoad& load = loads_[Index(node)];
  return load.bytes + LayerBytes(layer, limits.sequences) <= Room(node) &&
         load.seconds + LayerSeconds(node, layer) <= limits.cycle_s &&
         problem_.ForbiddenFrom(problem_.kind_of(node), layer) > layer;
}

void Packer::Put(int64_t node, int64_t layer, int64_t sequences) {
  NodeLoad& load = loads_[Index(node)];
  if (load.layers++ == 0) {
    used_.push_back(node);
  }
  load.bytes += LayerBytes(layer, sequences);
  load.seconds += LayerSeconds(node, layer);
}

void Packer::Take(int64_t node, int64_t layer, int64_t sequences) {
  NodeLoad& load = loads_[Index(node)];
  --load.layers;
  load.bytes -= LayerBytes(layer, sequences);
  // What rounding leaves behind would add up.
  load.seconds =
      load.layers == 0 ? 0 : load.seconds - LayerSeconds(node, layer);
}

void Packer::Clear() {
  for (const int64_t node : used_) {
    loads_[Index(node)] = NodeLoad();
  }
  used_.clear();
}

std::vector<int64_t> Packer::SortedLayers(LayerOrder order,
                                          int64_t sequences) const {
  const int64_t count = problem_.num_layers();
  double bytes_all = 0;
  double seconds_all = 0;
  std::vector<double> bytes;
  std::vector<double> seconds;
  const NodeKind& kind = problem_.kind(0);
  for (int64_t layer = 0; layer < count; ++layer) {
    bytes.push_back(static_cast<double>(LayerBytes(layer, sequences)));
    seconds.push_back(problem_.Seconds(kind, costs_, layer, layer + 1));
    bytes_all += bytes.back();
    seconds_all += seconds.back();
  }
  const auto size = [&](int64_t layer) {
    const double share = bytes_all > 0 ? bytes[Index(layer)] / bytes_all : 0;
    const double time =
        seconds_all > 0 ? seconds[Index(layer)] / seconds_all : 0;
    switch (order) {
      case LayerOrder::kMemory:
        return share;
      case LayerOrder::kTime:
        return time;
      case LayerOrder::kBoth:
        return std::max(share, time);
    }
    return share;
  };
  std::vector<double> sizes;
  for (int64_t layer = 0; layer < count; ++layer) {
    sizes.push_back(size(layer));
  }
  std::vector<int64_t> sorted(Index(count));
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) {
    return sizes[Index(a)] > sizes[Index(b)];
  });
  return sorted;
}

size_t Packer::StartFor(std::span<const int64_t> order, int64_t layer,
                        int64_t before, size_t start,
                        const Limits& limits) const {
  if (before < 0) {
    return 0;
  }
  // Where an equal layer found no room, this one finds none.
  if (LayerBytes(before, limits.sequences) ==
          LayerBytes(layer, limits.sequences) &&
      LayerSeconds(order[0], before) == LayerSeconds(order[0], layer) &&
      problem_.model().cluster().constraints.empty()) {
    return start;
  }
  const size_t pairs = order.size() * Index(problem_.num_layers());
  return pairs <= kPairsMax ? 0 : start - std::min(start, kLookBack);
}

int64_t Packer::FirstWithRoom(std::span<const int64_t> order, int64_t layer,
                              const Limits& limits, size_t* start,
                              bool may_open) const {
  for (; *start < order.size(); ++*start) {
    const int64_t node = order[*start];
    if ((may_open || loads_[Index(node)].layers > 0) &&
        Holds(node, layer, limits)) {
      return node;
    }
  }
  return -1;
}

int64_t Packer::FullestWithRoom(int64_t layer, const Limits& limits) const {
  int64_t best = -1;
  Bytes least = 0;
  for (const int64_t node : used_) {
    const Bytes left = Room(node) - loads_[Index(node)].bytes;
    if ((best < 0 || left < least) && Holds(node, layer, limits)) {
      best = node;
      least = left;
    }
  }
  return best;
}

std::optional<Route> Packer::Pack(std::span<const int64_t> order,
                                  LayerOrder layers, Fit fit,
                                  const Limits& limits, int64_t nodes_max) {
  Clear();
  std::vector<int64_t> place(Index(problem_.num_layers()), -1);
  size_t start = 0;
  int64_t before = -1;
  for (const int64_t layer : SortedLayers(layers, limits.sequences)) {
    const bool may_open = static_cast<int64_t>(used_.size()) < nodes_max;
    int64_t node = fit == Fit::kBest ? FullestWithRoom(layer, limits) : -1;
    if (node < 0) {
      const size_t begun = StartFor(order, layer, before, start, limits);
      start = begun;
      node = FirstWithRoom(order, layer, limits, &start, may_open);
      steps_ += static_cast<int64_t>(start - begun);
    }
    steps_ += 1 + (fit == Fit::kBest ? static_cast<int64_t>(used_.size()) : 0);
    if (node < 0) {
      return std::nullopt;
    }
    Put(node, layer, limits.sequences);
    place[Index(layer)] = node;
    before = layer;
  }
  return RouteOf(place);
}

Route Packer::RouteOf(const std::vector<int64_t>& place) const {
  Route route;
  for (int64_t layer = 0; layer < problem_.num_layers(); ++layer) {
    const int64_t node = place[Index(layer)];
    if (!route.empty() && route.back().node == node) {
      route.back().last_layer = layer;
    } else {
      route.push_back({node, layer, layer});
    }
  }
  return route;
}

double Packer::SlowestNode(const Route& route) {
  Clear();
  double slowest = 0;
  for (const RouteEntry& entry : route) {
    for (int64_t layer = entry.first_layer; layer <= entry.last_layer;
         ++layer) {
      Put(entry.node, layer, 1);
    }
    slowest = std::max(slowest, loads_[Index(entry.node)].seconds);
  }
  return slowest;
}

}  // namespace millrace::planner::placement
