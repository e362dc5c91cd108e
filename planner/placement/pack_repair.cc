#include <algorithm>
#include <cmath>

#include "planner/placement/packer.h"

namespace millrace::planner::placement {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

double Packer::Excess(int64_t node, const Limits& limits) const {
  const NodeLoad& load = loads_[Index(node)];
  const Bytes over = load.bytes - Room(node);
  double excess = 0;
  if (over > 0) {
    excess += static_cast<double>(over) /
              std::max(1.0, static_cast<double>(load.bytes));
  }
  if (load.seconds > limits.cycle_s) {
    excess += (load.seconds - limits.cycle_s) / load.seconds;
  }
  return excess;
}

void Packer::TryChange(std::vector<int64_t>& place,
                       std::span<const int64_t> nodes, int64_t layer,
                       const Limits& limits) {
  ++steps_;
  const int64_t from = place[Index(layer)];
  // Half of the time an exchange with a layer elsewhere.
  const int64_t other = Random(2) == 0 ? Random(problem_.num_layers()) : -1;
  const int64_t to =
      other >= 0 ? place[Index(other)]
                 : nodes[Index(Random(static_cast<int64_t>(nodes.size())))];
  const auto allowed = [&](int64_t node, int64_t moved) {
    return problem_.ForbiddenFrom(problem_.kind_of(node), moved) > moved;
  };
  if (to == from || !allowed(to, layer) ||
      (other >= 0 && !allowed(from, other))) {
    return;
  }
  const auto move = [&](int64_t a, int64_t b) {
    Take(a, layer, limits.sequences);
    Put(b, layer, limits.sequences);
    if (other >= 0) {
      Take(b, other, limits.sequences);
      Put(a, other, limits.sequences);
    }
  };
  const double before = Excess(from, limits) + Excess(to, limits);
  move(from, to);
  const double after = Excess(from, limits) + Excess(to, limits);
  if (after > before) {
    move(to, from);
    return;
  }
  place[Index(layer)] = to;
  if (other >= 0) {
    place[Index(other)] = from;
  }
}

std::optional<Route> Packer::Repair(const Route& start,
                                    std::span<const int64_t> order,
                                    const Limits& limits, int64_t nodes_max,
                                    int64_t steps_max) {
  Clear();
  const std::span<const int64_t> nodes = order.first(std::min(
      order.size(), static_cast<size_t>(std::max<int64_t>(1, nodes_max))));
  std::vector<bool> usable(loads_.size(), false);
  for (const int64_t node : nodes) {
    usable[Index(node)] = true;
  }
  std::vector<int64_t> place(Index(problem_.num_layers()), -1);
  for (const RouteEntry& entry : start) {
    for (int64_t layer = entry.first_layer; layer <= entry.last_layer;
         ++layer) {
      int64_t node = entry.node;
      for (int tries = 0;
           !usable[Index(node)] ||
           (problem_.ForbiddenFrom(problem_.kind_of(node), layer) == layer &&
            tries < 64);
           ++tries) {
        node = nodes[Index(Random(static_cast<int64_t>(nodes.size())))];
      }
      place[Index(layer)] = node;
      Put(node, layer, limits.sequences);
    }
  }
  // Layers on nodes that are beyond the limits; looked up anew now and then,
  // since most changes leave most of them as they are.
  std::vector<int64_t> wrong;
  const int64_t steps_end = steps_ + steps_max;
  while (steps_ < steps_end) {
    wrong.clear();
    for (int64_t layer = 0; layer < problem_.num_layers(); ++layer) {
      if (Excess(place[Index(layer)], limits) > 0) {
        wrong.push_back(layer);
      }
    }
    steps_ += problem_.num_layers() / 8;
    if (wrong.empty()) {
      return RouteOf(place);
    }
    for (size_t i = 0; i < 4 * wrong.size() && steps_ < steps_end; ++i) {
      const int64_t layer =
          wrong[Index(Random(static_cast<int64_t>(wrong.size())))];
      if (Excess(place[Index(layer)], limits) > 0) {
        TryChange(place, nodes, layer, limits);
      }
    }
  }
  return std::nullopt;
}

}  // namespace millrace::planner::placement
