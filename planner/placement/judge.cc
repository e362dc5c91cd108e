#include "planner/placement/judge.h"

#include <algorithm>
#include <tuple>

#include "planner/route_times.h"

namespace millrace::planner::placement {
namespace {

// More sequences than this are counted as this many.
constexpr int64_t kSequencesMost = int64_t{1} << 62;

}  // namespace

Judge::Judge(const Problem& problem)
    : problem_(problem),
      has_scratch_(problem.scratch_most() > 0),
      sums_(static_cast<size_t>(problem.model().num_nodes())) {}

void Judge::SumNodes(std::span<const RouteEntry> route) {
  for (const int64_t node : touched_) {
    sums_[static_cast<size_t>(node)] = NodeSum();
  }
  touched_.clear();
  const Problem::RowCosts& costs = problem_.At(1);
  for (const RouteEntry& entry : route) {
    NodeSum& sum = sums_[static_cast<size_t>(entry.node)];
    if (!sum.used) {
      sum.used = true;
      touched_.push_back(entry.node);
    }
    const int64_t begin = entry.first_layer;
    const int64_t end = entry.last_layer + 1;
    sum.weights += problem_.Weights(begin, end);
    sum.need += problem_.Need(begin, end);
    sum.first = sum.first || begin == 0;
    sum.last = sum.last || end == problem_.num_layers();
    sum.seconds += problem_.Seconds(problem_.kind(problem_.kind_of(entry.node)),
                                    costs, begin, end);
    if (has_scratch_) {
      sum.runs.push_back({begin, end});
    }
  }
}

bool Judge::Fits(Measures& measures) const {
  const Bytes n = problem_.sequences();
  Bytes fewest = -1;
  double watts = 0;
  for (const int64_t node : touched_) {
    const NodeSum& sum = sums_[static_cast<size_t>(node)];
    const NodeKind& kind = problem_.kind(problem_.kind_of(node));
    Bytes free = kind.room - sum.weights;
    if (sum.first && sum.last) {
      free += problem_.shared_weights();
    }
    if (has_scratch_) {
      free -= problem_.model().ScratchBytes(sum.runs);
    }
    if (free < 0) {
      return false;
    }
    if (sum.need > 0) {
      const Bytes held = free / sum.need;
      if (held < n) {
        return false;
      }
      fewest = fewest < 0 ? held : std::min(fewest, held);
    }
    watts += kind.power_w;
  }
  measures.watts = watts;
  if (fewest >= 0) {
    measures.sequences =
        static_cast<int64_t>(std::min(fewest, Bytes(kSequencesMost)));
  }
  return true;
}

double Judge::SlowestLink(std::span<const RouteEntry> route, double* loop_s) {
  hops_.clear();
  const Problem::RowCosts& costs = problem_.At(1);
  for (size_t i = 0; i + 1 < route.size(); ++i) {
    const int64_t from = route[i].node;
    const int64_t to = route[i + 1].node;
    const Problem::LinkTimes link = problem_.LinkBetween(from, to);
    const double seconds =
        costs.hop_bytes[static_cast<size_t>(route[i + 1].first_layer)] *
        link.byte_s;
    *loop_s += link.latency_s + seconds;
    hops_.push_back({from, to, seconds});
  }
  // A contiguous route uses every link once.
  if (touched_.size() < route.size()) {
    std::sort(hops_.begin(), hops_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.from, a.to) < std::tie(b.from, b.to);
    });
  }
  double slowest = 0;
  double sum = 0;
  for (size_t i = 0; i < hops_.size(); ++i) {
    const bool same = i > 0 && hops_[i].from == hops_[i - 1].from &&
                      hops_[i].to == hops_[i - 1].to;
    sum = (same ? sum : 0) + hops_[i].seconds;
    slowest = std::max(slowest, sum);
  }
  return slowest;
}

void Judge::AddTimes(std::span<const RouteEntry> route, Measures& measures) {
  double loop = 0;
  double cycle = 0;
  for (const int64_t node : touched_) {
    const double seconds = sums_[static_cast<size_t>(node)].seconds;
    loop += seconds;
    cycle = std::max(cycle, seconds);
  }
  cycle = std::max(cycle, SlowestLink(route, &loop));
  if (route.front().node != route.back().node) {
    loop +=
        problem_.LinkBetween(route.back().node, route.front().node).latency_s;
  }
  measures.rows = 1;
  measures.cycle_s = cycle;
  measures.loop_s = loop;
  if (cycle > 0) {
    // As many micro-batches as fill the pipeline: one row each cycle.
    measures.tokens_per_s = 1 / cycle;
  }
}

void Judge::AddTimesOfRows(std::span<const RouteEntry> route,
                           Measures& measures) {
  const RouteTimes times(problem_.model(), route);
  if (!times.known()) {
    return;
  }
  const int64_t rows = times.RowsFor(*problem_.concurrency());
  measures.rows = rows;
  measures.cycle_s = times.CycleSeconds(rows);
  measures.loop_s = times.LoopSeconds(rows);
  if (*measures.cycle_s > 0) {
    const auto n = static_cast<double>(times.Microbatches(rows));
    measures.tokens_per_s =
        static_cast<double>(rows) *
        std::min(n / *measures.loop_s, 1 / *measures.cycle_s);
  }
}

std::optional<Measures> Judge::Measure(std::span<const RouteEntry> route) {
  merged_.clear();
  for (const RouteEntry& entry : route) {
    if (problem_.ForbiddenFrom(problem_.kind_of(entry.node),
                               entry.first_layer) <= entry.last_layer) {
      return std::nullopt;
    }
    if (!merged_.empty() && merged_.back().node == entry.node) {
      merged_.back().last_layer = entry.last_layer;
    } else {
      merged_.push_back(entry);
    }
  }
  SumNodes(merged_);
  Measures measures;
  measures.nodes_used = static_cast<int64_t>(touched_.size());
  if (measures.nodes_used > problem_.nodes_max() || !Fits(measures)) {
    return std::nullopt;
  }
  if (problem_.rows_vary()) {
    AddTimesOfRows(merged_, measures);
  } else if (problem_.timed()) {
    AddTimes(merged_, measures);
  }
  return measures;
}

bool Judge::Offer(const Route& route) {
  const std::optional<Measures> measures = Measure(route);
  if (!measures.has_value() ||
      (best_.has_value() && Compare(*measures, best_->measures) >= 0)) {
    return false;
  }
  best_ = Candidate{merged_, *measures};
  return true;
}

}  // namespace millrace::planner::placement
