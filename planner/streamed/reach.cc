#include "planner/streamed/reach.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace::planner::streamed {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

double FastestByte(const Cluster& cluster) {
  double fastest = cluster.link_default.bandwidth.value_or(0);
  for (const NodePairLink& pair : cluster.links) {
    fastest = std::max(fastest, pair.link.bandwidth.value_or(0));
  }
  return fastest > 0 ? 1 / fastest : 0;
}

}  // namespace

Reach::Reach(const StreamedNodes& nodes, const std::vector<NodeKind>& kinds,
             int64_t nodes_max)
    : nodes_(nodes),
      kinds_(kinds),
      layers_(static_cast<int32_t>(nodes.model().num_layers())),
      fastest_byte_s_(FastestByte(nodes.model().cluster())),
      choices_(NodeChoices::Create(kinds, nodes_max)),
      reach_(choices_.has_value() ? Index(choices_->size()) : 0, 0),
      cuts_(Index(layers_) + 1, 0),
      ends_(kinds.size()) {
  const auto num_kinds = static_cast<int64_t>(kinds.size());
  constexpr int64_t kHalvings = 12;
  cost_ =
      exact() ? 2 * layers_ * num_kinds : kHalvings * (num_kinds + nodes_max);
}

double Reach::HopSeconds(int64_t layer, int64_t rows) const {
  return static_cast<double>(rows) * nodes_.model().CutBytes(layer) *
         fastest_byte_s_;
}

bool Reach::IsWithin(size_t kind, LayerRun run, double cycle_s,
                     int64_t rows) const {
  const int64_t node = kinds_[kind].nodes.front();
  const std::optional<Holding> holding = nodes_.Hold(node, run);
  return holding.has_value() &&
         (std::isinf(cycle_s) ||
          nodes_.Seconds(node, run, *holding, rows).value_or(0) <= cycle_s);
}

void Reach::FillCuts(double cycle_s, int64_t rows) {
  for (int32_t layer = 1; layer <= layers_; ++layer) {
    const bool quick = layer == layers_ || HopSeconds(layer, rows) <= cycle_s;
    cuts_[Index(layer)] = quick ? layer : cuts_[Index(layer - 1)];
  }
}

void Reach::FillEnds(double cycle_s, int64_t rows) {
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    std::vector<int32_t>& ends = ends_[kind];
    ends.assign(Index(layers_) + 1, layers_);
    int32_t end = 0;
    for (int32_t begin = 0; begin < layers_; ++begin) {
      end = std::max(end, begin);
      const std::vector<int32_t>& forbidden = kinds_[kind].forbidden_from;
      const int32_t most =
          forbidden.empty() ? layers_ : forbidden[Index(begin)];
      while (end < most && IsWithin(kind, {begin, end + 1}, cycle_s, rows)) {
        ++end;
      }
      ends[Index(begin)] = std::max(begin, cuts_[Index(end)]);
    }
  }
}

int32_t Reach::FarthestFrom(size_t kind, int32_t begin, double cycle_s,
                            int64_t rows) const {
  const std::vector<int32_t>& forbidden = kinds_[kind].forbidden_from;
  int32_t low = begin;
  int32_t high = forbidden.empty() ? layers_ : forbidden[Index(begin)];
  while (low < high) {
    const int32_t middle = low + (high - low + 1) / 2;
    if (IsWithin(kind, {begin, middle}, cycle_s, rows)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return std::max(begin, cuts_[Index(low)]);
}

std::optional<Route> Reach::Within(double cycle_s, int64_t rows,
                                   int64_t nodes_max) {
  FillCuts(cycle_s, rows);
  if (!exact()) {
    return ByStrength(cycle_s, rows, nodes_max);
  }
  FillEnds(cycle_s, rows);
  return ByCounts(nodes_max);
}

std::optional<Route> Reach::ByCounts(int64_t nodes_max) {
  int64_t best = -1;
  for (int64_t choice = 1; choice < choices_->size(); ++choice) {
    int32_t farthest = 0;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (const int64_t from = choices_->Without(choice, kind); from >= 0) {
        farthest = std::max(farthest, ends_[kind][Index(reach_[Index(from)])]);
      }
    }
    reach_[Index(choice)] = farthest;
    const int64_t count = choices_->count(choice);
    if (farthest == layers_ && count <= nodes_max &&
        (best < 0 || count < choices_->count(best))) {
      best = choice;
    }
  }
  return best < 0 ? std::nullopt : std::optional<Route>(RouteOf(best));
}

Route Reach::RouteOf(int64_t choice) const {
  Route route;
  std::vector<size_t> used(kinds_.size(), 0);
  while (choice > 0) {
    const int32_t end = reach_[Index(choice)];
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      const int64_t from = choices_->Without(choice, kind);
      const int32_t begin = from < 0 ? 0 : reach_[Index(from)];
      if (from < 0 || ends_[kind][Index(begin)] != end) {
        continue;
      }
      if (begin < end) {
        route.push_back({kinds_[kind].nodes[used[kind]++], begin, end - 1});
      }
      choice = from;
      break;
    }
  }
  std::reverse(route.begin(), route.end());
  return route;
}

std::optional<Route> Reach::ByStrength(double cycle_s, int64_t rows,
                                       int64_t nodes_max) const {
  std::vector<std::pair<int32_t, size_t>> order;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    order.emplace_back(-FarthestFrom(kind, 0, cycle_s, rows), kind);
  }
  std::sort(order.begin(), order.end());
  Route route;
  int32_t begin = 0;
  for (const auto& [strength, kind] : order) {
    for (const int64_t node : kinds_[kind].nodes) {
      if (begin == layers_ || static_cast<int64_t>(route.size()) == nodes_max) {
        break;
      }
      const int32_t end = FarthestFrom(kind, begin, cycle_s, rows);
      if (end == begin) {
        break;  // the others of this kind do not either
      }
      route.push_back({node, begin, end - 1});
      begin = end;
    }
  }
  return begin == layers_ ? std::optional<Route>(std::move(route))
                          : std::nullopt;
}

double Reach::CycleOf(const Route& route, int64_t rows) const {
  double cycle = 0;
  for (const RouteEntry& entry : route) {
    const Holding holding = *nodes_.Hold(entry.node, entry.run());
    cycle = std::max(
        cycle,
        nodes_.Seconds(entry.node, entry.run(), holding, rows).value_or(0));
    if (entry.first_layer > 0) {
      cycle = std::max(cycle, HopSeconds(entry.first_layer, rows));
    }
  }
  return cycle;
}

}  // namespace millrace::planner::streamed
