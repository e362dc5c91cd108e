#include "planner/placement/floors.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Kinds of nodes times types of layers that are looked at pair by pair.
constexpr size_t kPairsMax = 4'000'000;
// Of kinds, for the bisection of a cycle that counts layers.
constexpr size_t kCountedKindsMax = 20'000;
constexpr int kBisections = 45;

double Value(Bytes bytes) { return static_cast<double>(bytes); }

// The most that `nodes` nodes add up to, when those of kind i bring value[i].
template <typename T>
T MostOf(const std::vector<NodeKind>& kinds,
         std::vector<std::pair<T, size_t>> values, int64_t nodes) {
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  T sum = 0;
  for (const auto& [value, kind] : values) {
    const int64_t taken = std::min(nodes, kinds[kind].count());
    if (taken == 0 || value <= T(0)) {
      break;
    }
    sum += value * static_cast<T>(taken);
    nodes -= taken;
  }
  return sum;
}

}  // namespace

Floors::Floors(const Problem& problem)
    : problem_(problem),
      types_(LayerTypesOf(problem)),
      by_room_(problem.kinds().size()) {
  std::iota(by_room_.begin(), by_room_.end(), 0);
  std::sort(by_room_.begin(), by_room_.end(), [&](size_t a, size_t b) {
    return problem.kind(a).room > problem.kind(b).room;
  });
  const std::optional<int64_t> nodes = NodesFor(problem.sequences());
  nodes_ = nodes.value_or(problem.nodes_max() + 1);
  most_sequences_ = nodes_ > problem.nodes_max() ? 0 : MostSequences();
  if (problem.timed() && nodes_ <= problem.nodes_max()) {
    least_hops_s_ = LeastHops();
    cycle_s_ = CycleOf(1);
    loop_s_ = LoopOf(1);
    FillRates();
  }
}

double Floors::LoopOf(int64_t rows) const {
  return SumOfLeast(rows, [](const NodeKind&) { return 1.0; }) + least_hops_s_;
}

// With one row the rate is that of the cycle. Else rows over cycle is at most
// f(r) = r / least cycle of r rows, which does not fall; and since r - 1 rows
// are too few, (r - 1) micro-batches < C, where micro-batches >= loop / cycle:
// a plan of r rows has at most g(r) = r / (r - 1) * C / least loop of r - 1
// rows, which does not rise. So max(f(r), g(r + 1)) bounds all plans, for any
// r.
void Floors::FillRates() {
  const auto joules = [&](int64_t rows) {
    return SumOfLeast(rows, [](const NodeKind& kind) { return kind.power_w; });
  };
  const auto ratio = [](double a, double b) {
    return b > 0 ? a / b : kInfinity;
  };
  if (!problem_.rows_vary()) {
    tokens_per_s_ = ratio(1, cycle_s_);
    tokens_per_joule_ = ratio(1, joules(1));
    return;
  }
  const int64_t all = *problem_.concurrency();
  double watts = kInfinity;
  for (const NodeKind& kind : problem_.kinds()) {
    watts = std::min(watts, kind.power_w);
  }
  watts *= static_cast<double>(nodes_);
  const auto more_rows = [&](int64_t rows) {
    return rows >= all
               ? 0
               : ratio(static_cast<double>(rows + 1) * static_cast<double>(all),
                       static_cast<double>(rows) * LoopOf(rows));
  };
  tokens_per_s_ = kInfinity;
  tokens_per_joule_ = kInfinity;
  int64_t low = 1;
  int64_t high = all;
  while (low <= high) {
    const int64_t rows = low + (high - low) / 2;
    const double few = ratio(static_cast<double>(rows),
                             rows == 1 ? cycle_s_ : RoughCycleOf(rows));
    const double many = more_rows(rows);
    tokens_per_s_ = std::min(tokens_per_s_, std::max(few, many));
    tokens_per_joule_ =
        std::min(tokens_per_joule_,
                 std::max(ratio(static_cast<double>(rows), joules(rows)),
                          ratio(many, watts)));
    if (few < many) {
      low = rows + 1;
    } else {
      high = rows - 1;
    }
  }
}

double Floors::SumOfLeast(
    int64_t rows, const std::function<double(const NodeKind&)>& weight) const {
  const Problem::RowCosts& costs = problem_.At(rows);
  const std::vector<NodeKind>& kinds = problem_.kinds();
  double sum = 0;
  if (kinds.size() * types_.size() <= kPairsMax) {
    for (const LayerType& type : types_) {
      double least = kInfinity;
      for (const NodeKind& kind : kinds) {
        least = std::min(
            least, weight(kind) * problem_.Seconds(kind, costs, type.layer,
                                                   type.layer + 1));
      }
      sum += least * static_cast<double>(type.count);
    }
    return sum;
  }
  // Bytes and operations each where they are cheapest.
  double byte = kInfinity;
  std::vector<double> op(costs.ops.size(), kInfinity);
  for (const NodeKind& kind : kinds) {
    const double own = weight(kind);
    byte = std::min(byte, own * kind.byte_s);
    for (size_t i = 0; i < op.size(); ++i) {
      op[i] = std::min(op[i], own * kind.op_s[i]);
    }
  }
  sum = costs.bytes.back() * byte;
  for (size_t i = 0; i < op.size(); ++i) {
    sum += costs.ops[i].back() * op[i];
  }
  return sum;
}

double Floors::RoughCycleOf(int64_t rows) const {
  return std::max(SlowestLayer(rows), SharedWork(rows));
}

double Floors::CycleOf(int64_t rows) const {
  return std::max(RoughCycleOf(rows), CountedLayers(rows));
}

// Some node holds each layer.
double Floors::SlowestLayer(int64_t rows) const {
  const Problem::RowCosts& costs = problem_.At(rows);
  const std::vector<NodeKind>& kinds = problem_.kinds();
  if (kinds.size() * types_.size() > kPairsMax) {
    return 0;
  }
  double slowest = 0;
  for (const LayerType& type : types_) {
    const Bytes bytes =
        problem_.Weights(type.layer, type.layer + 1) +
        std::min(problem_.Need(type.layer, type.layer + 1), Bytes(1) << 63) *
            problem_.sequences();
    double least = kInfinity;
    for (const NodeKind& kind : kinds) {
      if (bytes <= kind.room) {
        least = std::min(
            least, problem_.Seconds(kind, costs, type.layer, type.layer + 1));
      }
    }
    slowest = std::max(slowest, least == kInfinity ? 0 : least);
  }
  return slowest;
}

// For any speeds y of nodes: the sum of y times a node's seconds is at least
// the sum over layers of the least y times seconds, and at most the cycle times
// the sum of y.
double Floors::SharedWork(int64_t rows) const {
  const Problem::RowCosts& costs = problem_.At(rows);
  const std::vector<NodeKind>& kinds = problem_.kinds();
  const auto bound = [&](const std::function<double(const NodeKind&)>& slow) {
    std::vector<std::pair<double, size_t>> speeds;
    for (size_t i = 0; i < kinds.size(); ++i) {
      const double own = slow(kinds[i]);
      if (!(own > 0)) {
        return 0.0;
      }
      speeds.emplace_back(1 / own, i);
    }
    return SumOfLeast(rows,
                      [&](const NodeKind& kind) { return 1 / slow(kind); }) /
           MostOf(kinds, std::move(speeds), problem_.nodes_max());
  };
  double most = bound([](const NodeKind& kind) { return kind.byte_s; });
  for (size_t i = 0; i < costs.ops.size(); ++i) {
    if (costs.ops[i].back() > 0) {
      most = std::max(
          most, bound([i](const NodeKind& kind) { return kind.op_s[i]; }));
    }
  }
  const int64_t layers = problem_.num_layers();
  return std::max(most, bound([&](const NodeKind& kind) {
                    return problem_.Seconds(kind, costs, 0, layers);
                  }));
}

// Within a cycle each node holds at most so many of the smallest layers.
double Floors::CountedLayers(int64_t rows) const {
  const Problem::RowCosts& costs = problem_.At(rows);
  const std::vector<NodeKind>& kinds = problem_.kinds();
  if (kinds.size() > kCountedKindsMax || problem_.nodes_max() == 0) {
    return 0;
  }
  std::vector<SizeLadder> ladders;
  const auto add = [&](const std::vector<double>& prefix) {
    std::vector<std::pair<double, int64_t>> sizes;
    for (const LayerType& type : types_) {
      const auto at = static_cast<size_t>(type.layer);
      sizes.emplace_back(prefix[at + 1] - prefix[at], type.count);
    }
    ladders.emplace_back(std::move(sizes));
  };
  add(costs.bytes);
  for (const std::vector<double>& ops : costs.ops) {
    add(ops);
  }
  const SizeLadder memory = MemoryLadder(problem_.sequences(), 0);
  const auto enough = [&](double cycle) {
    std::vector<std::pair<int64_t, size_t>> counts;
    for (size_t i = 0; i < kinds.size(); ++i) {
      int64_t count = memory.CountWithin(Value(kinds[i].room));
      for (size_t k = 0; k < ladders.size() && count > 0; ++k) {
        const double each = k == 0 ? kinds[i].byte_s : kinds[i].op_s[k - 1];
        if (each > 0) {
          count = std::min(count, ladders[k].CountWithin(cycle / each));
        }
      }
      counts.emplace_back(count, i);
    }
    return MostOf(kinds, std::move(counts), problem_.nodes_max()) >=
           problem_.num_layers();
  };
  double high = kInfinity;
  for (const NodeKind& kind : kinds) {
    high =
        std::min(high, problem_.Seconds(kind, costs, 0, problem_.num_layers()));
  }
  double low = 0;
  if (!enough(high) || enough(0)) {
    return 0;
  }
  for (int step = 0; step < kBisections; ++step) {
    const double middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return low;
}

double Floors::LeastHops() const {
  const int64_t hops = nodes_ - 1;
  if (hops < 1) {
    return 0;
  }
  double latency = problem_.default_link().latency_s;
  double byte = problem_.default_link().byte_s;
  for (const NodePairLink& pair : problem_.model().cluster().links) {
    const auto link = problem_.LinkBetween(pair.node_a, pair.node_b);
    latency = std::min(latency, link.latency_s);
    byte = std::min(byte, link.byte_s);
  }
  const std::vector<double>& sizes = problem_.At(1).hop_bytes;
  const double least = *std::min_element(sizes.begin() + 1, sizes.end());
  return static_cast<double>(hops) * (latency + byte * least) + latency;
}

}  // namespace millrace::planner::placement
