#include "planner/placement/kind_paths.h"

#include <algorithm>
#include <limits>

#include "planner/placement/kind_reach.h"

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kCostsMax = 16'000'000;  // 128 MB

}  // namespace

bool KindPaths::Affordable(const Problem& problem, const KindStates& states) {
  return states.size() <=
         kCostsMax / (static_cast<size_t>(problem.num_layers()) + 1);
}

KindPaths::KindPaths(const Problem& problem, const KindStates& states,
                     int64_t rows)
    : problem_(problem),
      states_(states),
      costs_(problem.At(rows)),
      width_(static_cast<size_t>(problem.num_layers()) + 1),
      ends_(problem.kinds().size()),
      seconds_(problem.kinds().size()) {}

double KindPaths::HopSeconds(int64_t cut) const {
  return cut == 0 ? 0
                  : costs_.hop_bytes[static_cast<size_t>(cut)] *
                        problem_.default_link().byte_s;
}

void KindPaths::FillTimes(const Limits& limits) {
  cycle_max_ = limits.cycle_s;
  for (size_t kind = 0; kind < ends_.size(); ++kind) {
    ends_[kind] = FarthestEnds(problem_, kind, costs_, limits);
    seconds_[kind].clear();
    for (size_t layer = 0; layer < width_; ++layer) {
      seconds_[kind].push_back(problem_.Seconds(problem_.kind(kind), costs_, 0,
                                                static_cast<int64_t>(layer)));
    }
  }
  cost_.assign(states_.size() * width_, kInfinity);
  cost_[0] = 0;
}

double KindPaths::CostOf(size_t kind, int64_t begin, int64_t end,
                         Combine combine, double before) const {
  const double run = seconds_[kind][static_cast<size_t>(end)] -
                     seconds_[kind][static_cast<size_t>(begin)];
  if (combine == Combine::kMax) {
    return std::max({before, run, HopSeconds(begin)});
  }
  return (before - seconds_[kind][static_cast<size_t>(begin)] +
          (begin == 0
               ? 0
               : HopSeconds(begin) + problem_.default_link().latency_s)) +
         seconds_[kind][static_cast<size_t>(end)];
}

// The run of the last node begins somewhere in a window that moves on with its
// end: the least of a sliding window.
void KindPaths::AddSums(size_t state, size_t kind) {
  const int64_t from = states_.Without(state, kind);
  if (from < 0) {
    return;
  }
  const double* before = Row(static_cast<size_t>(from));
  double* after = Row(state);
  const std::vector<int32_t>& ends = ends_[kind];
  const std::vector<double>& seconds = seconds_[kind];
  window_.clear();  // from `front` on, costs rise
  size_t front = 0;
  for (size_t end = 1; end < width_; ++end) {
    const size_t begin = end - 1;
    if (before[begin] < kInfinity &&
        HopSeconds(static_cast<int64_t>(begin)) <= cycle_max_) {
      const double cost =
          before[begin] - seconds[begin] +
          (begin == 0 ? 0
                      : HopSeconds(static_cast<int64_t>(begin)) +
                            problem_.default_link().latency_s);
      while (window_.size() > front && window_.back().cost >= cost) {
        window_.pop_back();
      }
      window_.push_back({begin, cost});
    }
    while (window_.size() > front &&
           static_cast<size_t>(ends[window_[front].begin]) < end) {
      ++front;
    }
    if (window_.size() > front) {
      after[end] = std::min(after[end], window_[front].cost + seconds[end]);
    }
  }
}

void KindPaths::AddMaxima(size_t state, size_t kind, double cost_max) {
  const int64_t from = states_.Without(state, kind);
  if (from < 0) {
    return;
  }
  const double* before = Row(static_cast<size_t>(from));
  double* after = Row(state);
  const std::vector<double>& seconds = seconds_[kind];
  for (size_t begin = 0; begin + 1 < width_; ++begin) {
    const double least =
        std::max(before[begin], HopSeconds(static_cast<int64_t>(begin)));
    if (least >= cost_max) {
      continue;
    }
    const auto end_max = static_cast<size_t>(ends_[kind][begin]);
    for (size_t end = begin + 1; end <= end_max; ++end) {
      after[end] =
          std::min(after[end], std::max(least, seconds[end] - seconds[begin]));
    }
  }
}

Route KindPaths::Trace(size_t state, Combine combine) const {
  Route route;
  std::vector<size_t> used(ends_.size(), 0);
  size_t end = width_ - 1;
  while (end > 0) {
    size_t best_kind = 0;
    size_t best_begin = 0;
    double best = kInfinity;
    for (size_t kind = 0; kind < ends_.size(); ++kind) {
      const int64_t from = states_.Without(state, kind);
      for (size_t begin = 0; from >= 0 && begin < end; ++begin) {
        const auto at = static_cast<int64_t>(begin);
        if (static_cast<size_t>(ends_[kind][begin]) < end ||
            HopSeconds(at) > cycle_max_) {
          continue;
        }
        const double cost = CostOf(kind, at, static_cast<int64_t>(end), combine,
                                   Row(static_cast<size_t>(from))[begin]);
        if (cost < best) {
          best = cost;
          best_kind = kind;
          best_begin = begin;
        }
      }
    }
    route.push_back({problem_.kind(best_kind).nodes[used[best_kind]++],
                     static_cast<int64_t>(best_begin),
                     static_cast<int64_t>(end) - 1});
    end = best_begin;
    state = static_cast<size_t>(states_.Without(state, best_kind));
  }
  std::reverse(route.begin(), route.end());
  return route;
}

std::optional<Route> KindPaths::LeastLoop(const Limits& limits,
                                          int64_t nodes_min,
                                          int64_t nodes_max) {
  FillTimes(limits);
  size_t best = 0;
  double least = kInfinity;
  for (size_t state = 1; state < states_.size(); ++state) {
    const int64_t count = states_.count(state);
    if (count > nodes_max) {
      continue;
    }
    for (size_t kind = 0; kind < ends_.size(); ++kind) {
      AddSums(state, kind);
    }
    const double loop = Row(state)[width_ - 1] +
                        (count > 1 ? problem_.default_link().latency_s : 0);
    if (count >= nodes_min && loop < least) {
      least = loop;
      best = state;
    }
  }
  if (best == 0) {
    return std::nullopt;
  }
  return Trace(best, Combine::kSum);
}

std::optional<Route> KindPaths::LeastEnergy(int64_t sequences, double known) {
  FillTimes({kInfinity, sequences});
  size_t best = 0;
  for (size_t state = 1; state < states_.size(); ++state) {
    const double watts = states_.watts(state);
    for (size_t kind = 0; kind < ends_.size(); ++kind) {
      AddMaxima(state, kind, known / watts);
    }
    if (const double energy = Row(state)[width_ - 1] * watts; energy < known) {
      known = energy;
      best = state;
    }
  }
  if (best == 0) {
    return std::nullopt;
  }
  return Trace(best, Combine::kMax);
}

}  // namespace millrace::planner::placement
