#include "planner/placement/enumerate.h"

#include <algorithm>
#include <vector>

namespace millrace::planner::placement {
namespace {

class Enumeration {
 public:
  Enumeration(const Problem& problem, bool interleaved, int64_t steps_max,
              Judge& judge)
      : problem_(problem),
        interleaved_(interleaved),
        steps_left_(steps_max),
        judge_(judge),
        rows_most_(problem.rows_vary() ? *problem.concurrency() : 1),
        costs_most_(problem.At(rows_most_)),
        costs_(problem.At(1)),
        nodes_(static_cast<size_t>(problem.model().num_nodes())),
        taken_(problem.kinds().size(), 0) {
    const int64_t layers = problem.num_layers();
    least_s_.resize(static_cast<size_t>(layers) + 1, 0);
    for (int64_t layer = layers - 1; layer >= 0; --layer) {
      double least = -1;
      for (const NodeKind& kind : problem.kinds()) {
        const double own = problem.Seconds(kind, costs_, layer, layer + 1);
        least = least < 0 ? own : std::min(least, own);
      }
      least_s_[static_cast<size_t>(layer)] =
          least_s_[static_cast<size_t>(layer) + 1] + least;
    }
  }

  bool Run() {
    Visit(0);
    return steps_left_ > 0;
  }

 private:
  struct NodeState {
    Bytes bytes = 0;  // taken for the sequences that must fit
    Bytes weights = 0;
    Bytes need = 0;
    double seconds = 0;       // of one row
    double seconds_most = 0;  // of as many rows as there may be
    int64_t runs = 0;
  };
  // Of the partial route.
  struct Totals {
    double cycle_s = 0;
    double cycle_most_s = 0;  // with as many rows as there may be
    double loop_s = 0;
    double watts = 0;
    Bytes fewest = -1;  // sequences that its nodes hold; -1: unbounded
  };

  // Nothing that follows can make these better.
  [[nodiscard]] bool CanBeat(int64_t layer) const {
    if (!judge_.best().has_value()) {
      return true;
    }
    Measures most;
    most.nodes_used = static_cast<int64_t>(used_.size());
    if (totals_.fewest >= 0) {
      most.sequences = static_cast<int64_t>(
          std::min(totals_.fewest, Bytes(int64_t{1} << 62)));
    }
    const double cycle = totals_.cycle_s;
    most.cycle_s = cycle;
    most.loop_s = totals_.loop_s + least_s_[static_cast<size_t>(layer)];
    most.watts = totals_.watts;
    if (cycle > 0) {
      // Rows over cycle never falls with the rows.
      most.tokens_per_s =
          static_cast<double>(rows_most_) / totals_.cycle_most_s;
    }
    return judge_.Compare(most, judge_.best()->measures) < 0;
  }

  void Visit(int64_t layer) {
    if (steps_left_ <= 0 || !CanBeat(layer)) {
      return;
    }
    if (layer == problem_.num_layers()) {
      judge_.Offer(route_);
      return;
    }
    if (interleaved_) {
      // By index: deeper visits append to the nodes in use.
      const size_t in_use = used_.size();
      for (size_t i = 0; i < in_use; ++i) {
        PlaceFrom(used_[i], layer);
      }
    }
    if (static_cast<int64_t>(used_.size()) >= problem_.nodes_max()) {
      return;
    }
    for (size_t kind = 0; kind < taken_.size(); ++kind) {
      if (taken_[kind] < problem_.kind(kind).count()) {
        const int64_t node =
            problem_.kind(kind).nodes[static_cast<size_t>(taken_[kind]++)];
        used_.push_back(node);
        PlaceFrom(node, layer);
        used_.pop_back();
        --taken_[kind];
      }
    }
  }

  // Every run that begins here on this node; in an interleaved search one layer
  // at a time, which the next step may continue.
  void PlaceFrom(int64_t node, int64_t begin) {
    const size_t kind = problem_.kind_of(node);
    const int64_t end_max =
        std::min(interleaved_ ? begin + 1 : problem_.num_layers(),
                 problem_.ForbiddenFrom(kind, begin));
    const NodeState before = nodes_[static_cast<size_t>(node)];
    const Totals totals = totals_;
    for (int64_t end = begin + 1; end <= end_max; ++end) {
      --steps_left_;
      if (!Add(node, before, begin, end)) {
        break;
      }
      Visit(end);
      route_.pop_back();
      totals_ = totals;
    }
    totals_ = totals;
    nodes_[static_cast<size_t>(node)] = before;
  }

  // Puts [begin, end) onto the node; false where memory does not allow it.
  bool Add(int64_t node, const NodeState& before, int64_t begin, int64_t end) {
    const NodeKind& kind = problem_.kind(problem_.kind_of(node));
    NodeState& state = nodes_[static_cast<size_t>(node)];
    state = before;
    state.weights += problem_.Weights(begin, end);
    state.need += problem_.Need(begin, end);
    ++state.runs;
    const bool whole = end == problem_.num_layers() && !route_.empty() &&
                       route_.front().node == node;
    const Bytes shared = whole || (begin == 0 && end == problem_.num_layers())
                             ? problem_.shared_weights()
                             : Bytes(0);
    const Bytes free = kind.room - state.weights + shared;
    const Bytes reach = std::min(state.need, Bytes(1) << 63);
    if (free < 0 || reach * problem_.sequences() > free) {
      return false;
    }
    state.seconds += problem_.Seconds(kind, costs_, begin, end);
    state.seconds_most += problem_.Seconds(kind, costs_most_, begin, end);
    totals_.cycle_s = std::max(totals_.cycle_s, state.seconds);
    totals_.cycle_most_s = std::max(totals_.cycle_most_s, state.seconds_most);
    totals_.loop_s += state.seconds - before.seconds;
    if (before.runs == 0) {
      totals_.watts += kind.power_w;
    }
    if (state.need > 0) {
      const Bytes held = free / state.need;
      totals_.fewest =
          totals_.fewest < 0 ? held : std::min(totals_.fewest, held);
    }
    if (!route_.empty() && route_.back().node != node) {
      const Problem::LinkTimes link =
          problem_.LinkBetween(route_.back().node, node);
      const double hop =
          costs_.hop_bytes[static_cast<size_t>(begin)] * link.byte_s;
      totals_.cycle_s = std::max(totals_.cycle_s, hop);
      totals_.cycle_most_s =
          std::max(totals_.cycle_most_s, hop * static_cast<double>(rows_most_));
      totals_.loop_s += hop + link.latency_s;
    }
    route_.push_back({node, begin, end - 1});
    return true;
  }

  const Problem& problem_;
  const bool interleaved_;
  int64_t steps_left_;
  Judge& judge_;
  // Rows per micro-batch: at most as many as sequences.
  const int64_t rows_most_;
  const Problem::RowCosts costs_most_;
  const Problem::RowCosts costs_;  // of one row
  std::vector<NodeState> nodes_;
  std::vector<int64_t> taken_;  // nodes of each kind in use, the first ones
  std::vector<int64_t> used_;
  std::vector<RouteEntry> route_;
  Totals totals_;
  std::vector<double> least_s_;  // [layers + 1], all layers from there on
};

}  // namespace

bool EnumerateRoutes(const Problem& problem, bool interleaved,
                     int64_t steps_max, Judge& judge) {
  return Enumeration(problem, interleaved, steps_max, judge).Run();
}

}  // namespace millrace::planner::placement
