#include "planner/route_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace millrace::planner {
namespace {

// A ratio this close to a whole number is that number.
constexpr double kWholeTolerance = 1e-12;
// More micro-batches than this are counted as this many.
constexpr double kMicrobatchesMax = 1e18;

}  // namespace

RouteTimes::RouteTimes(const CostModel& model,
                       std::span<const RouteEntry> route)
    : model_(model) {
  absl::flat_hash_map<int64_t, size_t> place;
  for (const RouteEntry& entry : route) {
    const auto [found, is_new] = place.emplace(entry.node, nodes_.size());
    if (is_new) {
      nodes_.push_back({entry.node, PassCost()});
    }
    NodePass& own = nodes_[found->second];
    const std::optional<PassCost> pass = model.Pass(entry.node, entry.run());
    if (!pass.has_value()) {
      own.pass.reset();
      known_ = false;
    } else if (own.pass.has_value()) {
      *own.pass += *pass;
      sum_ += *pass;
    }
  }
  AddHops(route);
}

void RouteTimes::AddHops(std::span<const RouteEntry> route) {
  absl::flat_hash_map<std::pair<int64_t, int64_t>, size_t> place;
  const auto add_latency = [this](const Link& link) {
    known_ = known_ && link.latency_s.has_value();
    latency_s_ += link.latency_s.value_or(0);
  };
  for (size_t hop = 0; hop + 1 < route.size(); ++hop) {
    const int64_t from = route[hop].node;
    const int64_t to = route[hop + 1].node;
    if (from == to) {
      continue;
    }
    const Link& link = model_.LinkBetween(from, to);
    add_latency(link);
    const double bytes = model_.CutBytes(route[hop + 1].first_layer);
    if (bytes > 0 && !link.bandwidth.has_value()) {
      known_ = false;
      continue;
    }
    const double row_s = bytes > 0 ? bytes / *link.bandwidth : 0;
    const auto [found, is_new] =
        place.emplace(std::make_pair(from, to), links_.size());
    if (is_new) {
      links_.push_back({from, 0});
    }
    links_[found->second].row_s += row_s;
    occupancy_s_ += row_s;
  }
  if (!route.empty() && route.back().node != route.front().node) {
    add_latency(model_.LinkBetween(route.back().node, route.front().node));
  }
}

double RouteTimes::CycleSeconds(int64_t rows) const {
  double cycle = 0;
  for (const NodePass& own : nodes_) {
    cycle = std::max(cycle, model_.Seconds(*own.pass, rows));
  }
  for (const LinkUse& link : links_) {
    cycle = std::max(cycle, static_cast<double>(rows) * link.row_s);
  }
  return cycle;
}

double RouteTimes::LoopSeconds(int64_t rows) const {
  return model_.Seconds(sum_, rows) + latency_s_ +
         static_cast<double>(rows) * occupancy_s_;
}

int64_t RouteTimes::Microbatches(int64_t rows) const {
  const double cycle = CycleSeconds(rows);
  if (cycle == 0) {
    return 1;
  }
  const double ratio = LoopSeconds(rows) / cycle * (1 - kWholeTolerance);
  // Written so that what is no number becomes the most.
  if (!(ratio < kMicrobatchesMax)) {
    return static_cast<int64_t>(kMicrobatchesMax);
  }
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(ratio)));
}

Binding RouteTimes::CycleBinding(int64_t rows) const {
  Binding binding;
  double cycle = -1;
  for (const NodePass& own : nodes_) {
    if (const double seconds = model_.Seconds(*own.pass, rows);
        seconds > cycle) {
      cycle = seconds;
      binding = {BindingKind::kTime, own.node};
    }
  }
  for (const LinkUse& link : links_) {
    if (const double seconds = static_cast<double>(rows) * link.row_s;
        seconds > cycle) {
      cycle = seconds;
      binding = {BindingKind::kLink, link.from};
    }
  }
  return binding;
}

bool RouteTimes::Serves(int64_t rows, int64_t sequences) const {
  const int64_t microbatches = Microbatches(rows);
  return microbatches >= (sequences + rows - 1) / rows;
}

bool RouteTimes::MoreRowsFillBetter(int64_t rows) const {
  // The line that sets the cycle at `rows`; of several the steepest, which sets
  // it from there on.
  double cycle = -1;
  double fixed = 0;
  double slope = 0;
  const auto meet = [&](double line_fixed, double line_slope) {
    const double seconds = line_fixed + static_cast<double>(rows) * line_slope;
    if (seconds > cycle || (seconds == cycle && line_slope > slope)) {
      cycle = seconds;
      fixed = line_fixed;
      slope = line_slope;
    }
  };
  for (const NodePass& own : nodes_) {
    meet(model_.FixedSecondsOfMany(*own.pass), own.pass->row_s);
  }
  for (const LinkUse& link : links_) {
    meet(0, link.row_s);
  }
  // (a + b rows) / (c + d rows) rises where b c > a d.
  const double loop_fixed = model_.FixedSecondsOfMany(sum_) + latency_s_;
  const double loop_slope = sum_.row_s + occupancy_s_;
  return loop_slope * fixed > loop_fixed * slope;
}

int64_t RouteTimes::RowsOnStraightLines(int64_t first,
                                        int64_t sequences) const {
  // A straight loop over a cycle that is the highest of straight lines rises,
  // then falls. While it rises, rows times micro-batches rise too.
  int64_t low = first;
  int64_t high = sequences;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (MoreRowsFillBetter(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const int64_t peak = low;
  if (Serves(peak, sequences)) {
    low = first;
    high = peak;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (Serves(middle, sequences)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  // Behind the peak micro-batches only become fewer: so many rows at least.
  int64_t rows = peak;
  while (rows < sequences && !Serves(rows, sequences)) {
    const int64_t microbatches = Microbatches(rows);
    rows = std::max(rows + 1, (sequences + microbatches - 1) / microbatches);
  }
  return std::min(rows, sequences);
}

int64_t RouteTimes::RowsFor(int64_t sequences) const {
  int64_t rows = 1;
  const int64_t curved = model_.has_experts()
                             ? std::min(sequences, model_.rows_that_read_all())
                             : 1;
  // Reading of experts is no straight line: one by one while it bends.
  for (; rows < curved; ++rows) {
    if (Serves(rows, sequences)) {
      return rows;
    }
  }
  return RowsOnStraightLines(rows, sequences);
}

}  // namespace millrace::planner
