#include "planner/replan/fewest_bytes.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "planner/replan/route_choice.h"

namespace millrace::planner::replan {
namespace {

using placement::Bytes;
using placement::NodeKind;
using placement::Problem;
using placement::Route;

// Layers up to which routes are enumerated: recursion is as deep.
constexpr int64_t kLayersMax = 2000;
// Nodes looked at for a layer: a tenth of a second for each of two passes.
constexpr int64_t kSteps = 2'000'000;
constexpr int64_t kPolishSteps = 3'000'000;

size_t Index(int64_t i) { return static_cast<size_t>(i); }

// All routes, layer by layer, but for those that move more than the best one
// and those that differ only by which of equal nodes without layers they use.
class Enumeration {
 public:
  Enumeration(const Problem& problem, const HeldLayers& held, bool contiguous,
              RouteChoice& choice)
      : problem_(problem),
        held_(held),
        contiguous_(contiguous),
        choice_(choice),
        nodes_(Index(problem.model().num_nodes())) {
    for (const int64_t node : held.holders()) {
      if (node != kNobody && !nodes_[Index(node)].holds) {
        nodes_[Index(node)].holds = true;
        candidates_.push_back(node);
      }
    }
    for (const NodeKind& kind : problem.kinds()) {
      std::vector<int64_t>& idle = idle_.emplace_back();
      for (const int64_t node : kind.nodes) {
        if (!nodes_[Index(node)].holds) {
          idle.push_back(node);
        }
      }
    }
    taken_.assign(idle_.size(), 0);
  }

  // Routes that move at most `bytes_max`; false where it gave up.
  bool Run(int64_t bytes_max) {
    bytes_max_ = bytes_max;
    steps_left_ = kSteps;
    Visit(0, 0, 0);
    return steps_left_ > 0;
  }

 private:
  struct NodeState {
    bool holds = false;   // a layer, before
    bool closed = false;  // contiguous: its run has ended
    Bytes weights = 0;
    Bytes need = 0;
  };

  [[nodiscard]] int64_t BytesMax() const {
    return choice_.best().has_value()
               ? std::min(bytes_max_, choice_.best()->bytes)
               : bytes_max_;
  }

  // `moved`: bytes so far; `debt`: of later layers whose holder's run ended.
  void Visit(int64_t layer, int64_t moved, int64_t debt) {
    if (layer == problem_.num_layers()) {
      // A measurement takes as long as many steps.
      steps_left_ -= (problem_.rows_vary() ? 200 : 20) +
                     static_cast<int64_t>(route_.size()) + layer / 8;
      choice_.Offer(route_);
      return;
    }
    const int64_t holder = held_.holder(layer);
    const int64_t current = route_.empty() ? kNobody : route_.back().node;
    if (holder != kNobody) {
      Try(layer, holder, moved, debt);
      // Whoever else takes it loads it: most layers end here at once.
      if (!nodes_[Index(holder)].closed &&
          moved + debt + DebtOf(layer) + held_.LeastBytesFrom(layer + 1) >
              BytesMax()) {
        return;
      }
    }
    if (current != kNobody && current != holder) {
      Try(layer, current, moved, debt);
    }
    for (const int64_t node : candidates_) {
      if (node != holder && node != current) {
        Try(layer, node, moved, debt);
      }
    }
    for (size_t kind = 0; kind < idle_.size(); ++kind) {
      const size_t taken = taken_[kind];
      for (size_t i = 0; i < taken && steps_left_ > 0; ++i) {
        if (idle_[kind][i] != current) {
          Try(layer, idle_[kind][i], moved, debt);
        }
      }
      if (taken < idle_[kind].size()) {
        ++taken_[kind];
        Try(layer, idle_[kind][taken], moved, debt);
        --taken_[kind];
      }
    }
  }

  void Try(int64_t layer, int64_t node, int64_t moved, int64_t debt) {
    NodeState& state = nodes_[Index(node)];
    if (--steps_left_ <= 0 || state.closed ||
        problem_.ForbiddenFrom(problem_.kind_of(node), layer) == layer) {
      return;
    }
    const int64_t current = route_.empty() ? kNobody : route_.back().node;
    const bool closes = contiguous_ && current != kNobody && current != node;
    const int64_t first = route_.empty() ? node : route_.front().node;
    const int64_t holder = held_.holder(layer);
    if (contiguous_ && holder != kNobody && nodes_[Index(holder)].closed) {
      debt -= DebtOf(layer);
    }
    moved += held_.BytesToLoad(layer, node, first);
    if (closes && nodes_[Index(current)].holds) {
      steps_left_ -= problem_.num_layers() / 64;
      for (int64_t i = layer + 1; i < problem_.num_layers(); ++i) {
        debt += held_.holder(i) == current ? DebtOf(i) : 0;
      }
    }
    if (moved + debt + held_.LeastBytesFrom(layer + 1) > BytesMax()) {
      return;
    }
    const NodeState before = state;
    state.weights += problem_.Weights(layer, layer + 1);
    state.need += problem_.Need(layer, layer + 1);
    if (Fits(layer, node, first, state)) {
      if (closes) {
        nodes_[Index(current)].closed = true;
      }
      Extend(layer, node);
      Visit(layer + 1, moved, debt);
      Shorten(layer);
      if (closes) {
        nodes_[Index(current)].closed = false;
      }
    }
    state = before;
  }

  // At least what any other node loads of a layer.
  [[nodiscard]] int64_t DebtOf(int64_t layer) const {
    return problem_.model().costs().layers[Index(layer)].weights_bytes;
  }

  // Scratch is left to the measurement: it is never less than nothing.
  [[nodiscard]] bool Fits(int64_t layer, int64_t node, int64_t first,
                          const NodeState& state) const {
    const bool whole = layer + 1 == problem_.num_layers() && first == node;
    const Bytes free = problem_.kind(problem_.kind_of(node)).room -
                       state.weights +
                       (whole ? problem_.shared_weights() : Bytes(0));
    // Beyond 2^63 it does not fit anyway, and the product stays in 128 bits.
    const Bytes need = std::min(state.need, Bytes(1) << 63);
    return free >= 0 && need * problem_.sequences() <= free;
  }

  void Extend(int64_t layer, int64_t node) {
    if (!route_.empty() && route_.back().node == node) {
      route_.back().last_layer = layer;
    } else {
      route_.push_back({node, layer, layer});
    }
  }
  void Shorten(int64_t layer) {
    if (route_.back().first_layer == layer) {
      route_.pop_back();
    } else {
      route_.back().last_layer = layer - 1;
    }
  }

  const Problem& problem_;
  const HeldLayers& held_;
  const bool contiguous_;
  RouteChoice& choice_;
  std::vector<NodeState> nodes_;
  std::vector<int64_t> candidates_;         // nodes that hold layers
  std::vector<std::vector<int64_t>> idle_;  // by kind: nodes that do not
  std::vector<size_t> taken_;               // of idle_: the first ones
  Route route_;
  int64_t bytes_max_ = 0;
  int64_t steps_left_ = 0;
};

// Random changes of a few layers, each measured in full; as good ones are
// taken too.
void Polish(const Problem& problem, RouteChoice& choice) {
  if (!choice.best().has_value()) {
    return;
  }
  RouteChoice::Choice current = *choice.best();
  std::mt19937_64 random(1);
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const int64_t layers = problem.num_layers();
  for (int64_t steps = kPolishSteps; steps > 0;) {
    const Route& old = current.route;
    steps -= 50 + layers + 4 * static_cast<int64_t>(old.size()) +
             (problem.rows_vary() ? 200 : 0);
    // To a neighbor, to any node in use, or to any kind of node.
    const auto at = below(static_cast<int64_t>(old.size()));
    const RouteEntry& run = old[Index(at)];
    int64_t first = run.first_layer;
    int64_t last = run.last_layer;
    const int64_t cut = first + below(last - first + 1);
    (below(2) == 0 ? first : last) = cut;
    int64_t to = 0;
    if (below(4) == 0) {
      const NodeKind& kind = problem.kind(
          Index(below(static_cast<int64_t>(problem.kinds().size()))));
      to = kind.nodes[Index(below(std::min(kind.count(), layers + 1)))];
    } else {
      const auto size = static_cast<int64_t>(old.size());
      const int64_t other = below(3) == 0 ? below(size) : at + 1 - 2 * below(2);
      if (other < 0 || other >= size) {
        continue;
      }
      to = old[Index(other)].node;
    }
    Route changed;
    for (const RouteEntry& entry : old) {
      if (entry.first_layer != run.first_layer) {
        changed.push_back(entry);
        continue;
      }
      if (entry.first_layer < first) {
        changed.push_back({entry.node, entry.first_layer, first - 1});
      }
      changed.push_back({to, first, last});
      if (last < entry.last_layer) {
        changed.push_back({entry.node, last + 1, entry.last_layer});
      }
    }
    std::optional<RouteChoice::Choice> own = choice.Measure(changed);
    if (own.has_value() && choice.Compare(*own, current) <= 0) {
      current = *std::move(own);
      choice.Offer(current.route);
    }
  }
}

}  // namespace

std::optional<FewestBytes> FindFewestBytes(const Problem& problem,
                                           const HeldLayers& held,
                                           bool contiguous,
                                           const std::vector<Route>& known) {
  RouteChoice choice(problem, held, contiguous);
  for (const Route& route : known) {
    choice.Offer(route);
  }
  bool exact = false;
  if (problem.num_layers() <= kLayersMax) {
    // First only routes that move the least there can be: few are left.
    Enumeration enumeration(problem, held, contiguous, choice);
    const bool all = enumeration.Run(held.LeastBytes());
    const bool met =
        choice.best().has_value() && choice.best()->bytes <= held.LeastBytes();
    exact = met ? all : enumeration.Run(std::numeric_limits<int64_t>::max());
  }
  if (!exact) {
    Polish(problem, choice);
  }
  if (!choice.best().has_value()) {
    return std::nullopt;
  }
  const RouteChoice::Choice& best = *choice.best();
  return FewestBytes{
      best.route, best.bytes,
      exact ? best.bytes : std::min(best.bytes, held.LeastBytes()), exact};
}

}  // namespace millrace::planner::replan
