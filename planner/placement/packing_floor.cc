#include <algorithm>
#include <utility>
#include <vector>

#include "planner/placement/floors.h"

// How few nodes hold a model and how many sequences fit: bounds of bin packing.

namespace millrace::planner::placement {
namespace {

// Dual feasible functions of Fekete and Schepers, "New classes of fast lower
// bounds for bin packing problems" (2001), u^(k): more than these gain nothing
// in practice.
constexpr int64_t kDualsMax = 60;
// Types of layers for which thresholds and duals are tried one by one.
constexpr size_t kTypesMax = 512;
// Kinds of nodes times thresholds: each of the latter looks at all kinds.
constexpr size_t kThresholdKindsMax = 40'000;
constexpr size_t kThresholdsMax = 16;

}  // namespace

Bytes Floors::TypeBytes(const LayerType& type, int64_t sequences) const {
  return problem_.Weights(type.layer, type.layer + 1) +
         std::min(problem_.Need(type.layer, type.layer + 1), Bytes(1) << 63) *
             sequences;
}

SizeLadder Floors::MemoryLadder(int64_t sequences, Bytes at_least) const {
  std::vector<std::pair<double, int64_t>> sizes;
  for (const LayerType& type : types_) {
    if (const Bytes bytes = TypeBytes(type, sequences); bytes >= at_least) {
      // A tied head may be there already.
      const bool tied = type.layer + 1 == problem_.num_layers();
      sizes.emplace_back(
          static_cast<double>(bytes -
                              (tied ? problem_.shared_weights() : Bytes(0))),
          type.count);
    }
  }
  return SizeLadder(std::move(sizes));
}

// Nodes, the roomiest first, until what they bring adds up. Roomier nodes bring
// no less.
std::optional<int64_t> Floors::FewestFor(
    double total, const std::function<double(const NodeKind&)>& value) const {
  int64_t nodes = 0;
  for (const size_t index : by_room_) {
    if (total <= 0) {
      break;
    }
    const NodeKind& kind = problem_.kind(index);
    const double each = value(kind);
    if (each <= 0) {
      return std::nullopt;
    }
    const double needed = std::ceil(total / each * (1 - 1e-12));
    const auto taken = static_cast<int64_t>(
        std::min(needed, static_cast<double>(kind.count())));
    nodes += taken;
    total -= each * static_cast<double>(taken);
  }
  // What rounding leaves over does not count as missing.
  return total > 1e-6 ? std::nullopt : std::optional<int64_t>(nodes);
}

std::optional<int64_t> Floors::NodesFor(int64_t sequences) const {
  const Bytes roomiest = problem_.kind(by_room_.front()).room;
  Bytes total = -problem_.shared_weights();
  for (const LayerType& type : types_) {
    const Bytes bytes = TypeBytes(type, sequences);
    if (bytes > roomiest) {
      return std::nullopt;
    }
    total += bytes * type.count;
  }
  // Bytes beyond 2^53 are rounded: a hair less than the total is asked for.
  const auto volume = FewestFor(
      static_cast<double>(total) * (1 - 1e-11),
      [](const NodeKind& kind) { return static_cast<double>(kind.room); });
  if (!volume.has_value()) {
    return std::nullopt;
  }
  int64_t fewest = std::max<int64_t>(1, *volume);
  if (types_.size() > kTypesMax) {
    return fewest;
  }
  for (const Bytes threshold : Thresholds(sequences)) {
    int64_t count = 0;
    for (const LayerType& type : types_) {
      count += TypeBytes(type, sequences) >= threshold ? type.count : 0;
    }
    const SizeLadder ladder = MemoryLadder(sequences, threshold);
    const auto nodes =
        FewestFor(static_cast<double>(count), [&](const NodeKind& kind) {
          return static_cast<double>(
              ladder.CountWithin(static_cast<double>(kind.room)));
        });
    if (!nodes.has_value()) {
      return std::nullopt;
    }
    fewest = std::max(fewest, *nodes);
  }
  return std::max(fewest, DualBound(sequences, roomiest));
}

std::vector<Bytes> Floors::Thresholds(int64_t sequences) const {
  const size_t tried =
      std::min(kThresholdsMax, kThresholdKindsMax / problem_.kinds().size());
  std::vector<Bytes> sizes = {0};
  for (const LayerType& type : types_) {
    sizes.push_back(TypeBytes(type, sequences));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  // The largest ones tell most; each costs a look at every kind of node.
  if (sizes.size() > tried) {
    sizes.erase(
        sizes.begin() + (tried > 1 ? 1 : 0),
        sizes.end() - static_cast<ptrdiff_t>(tried > 1 ? tried - 1 : tried));
  }
  return sizes;
}

// A layer of size x in a room of 1 counts u(x), where u adds up to at most 1
// over whatever fits: the sum over all layers is a bound.
int64_t Floors::DualBound(int64_t sequences, Bytes room) const {
  int64_t best = 0;
  for (int64_t k = 1; k <= kDualsMax && room > 0; ++k) {
    double sum = 0;
    for (const LayerType& type : types_) {
      Bytes size = TypeBytes(type, sequences);
      if (type.layer + 1 == problem_.num_layers()) {
        size -= std::min(size, problem_.shared_weights());
      }
      const Bytes whole = size * (k + 1) / room;
      const double u =
          size * (k + 1) % room == 0
              ? static_cast<double>(size) / static_cast<double>(room)
              : static_cast<double>(whole) / static_cast<double>(k);
      sum += u * static_cast<double>(type.count);
    }
    best = std::max(best, static_cast<int64_t>(std::ceil(sum * (1 - 1e-9))));
  }
  return best;
}

int64_t Floors::MostSequences() const {
  const auto holds = [&](int64_t sequences) {
    const std::optional<int64_t> nodes = NodesFor(sequences);
    return nodes.has_value() && *nodes <= problem_.nodes_max();
  };
  // By volume alone first: what the roomiest nodes have, over one sequence.
  constexpr int64_t kMost = int64_t{1} << 62;
  Bytes room = 0;
  int64_t nodes = problem_.nodes_max();
  for (const size_t kind : by_room_) {
    const int64_t taken = std::min(nodes, problem_.kind(kind).count());
    room += std::max(Bytes(0), problem_.kind(kind).room) * taken;
    nodes -= taken;
  }
  const Bytes need = problem_.Need(0, problem_.num_layers());
  int64_t low = problem_.sequences();
  int64_t high = need == 0 ? low
                           : std::max(low, static_cast<int64_t>(std::min(
                                               Bytes(kMost), room / need)));
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace millrace::planner::placement
