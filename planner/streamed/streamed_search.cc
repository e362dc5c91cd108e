#include "planner/streamed/streamed_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "base/status_macros.h"
#include "planner/criteria.h"
#include "planner/plan_numbers.h"
#include "planner/streamed/held_costs.h"
#include "planner/streamed/least_loop.h"

namespace millrace::planner::streamed {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Cycles closer than this are one: sums in another order differ by less.
constexpr double kCycleTolerance = 1e-12;
// Runs looked at in one search, about a second of them.
constexpr int64_t kWorkMax = 3'000'000;
constexpr int64_t kHalvingsMax = 60;
constexpr int64_t kHalvingsMin = 12;
// Cycles between the least one and that of the fewest nodes: each is a choice
// between speed and nodes that an objective may want.
constexpr int64_t kCyclesBetween = 16;
constexpr size_t kRowsTried = 8;
// The same where one look at all nodes costs more runs than this.
constexpr int64_t kLarge = 20'000;
constexpr int64_t kCyclesBetweenLarge = 6;
constexpr size_t kRowsTriedLarge = 3;

class Search {
 public:
  Search(const StreamedNodes& nodes, std::vector<Criterion> criteria,
         std::optional<int64_t> concurrency)
      : nodes_(nodes),
        model_(nodes.model()),
        criteria_(std::move(criteria)),
        concurrency_(concurrency),
        kinds_(KindsOf(model_)),
        nodes_max_(
            std::min(model_.num_layers(),
                     model_.num_nodes() - model_.cluster().SpareNodes())),
        reach_(nodes, kinds_, nodes_max_) {}

  std::optional<StreamedRoute> Run(Objective objective) {
    for (const int64_t rows : RowsToTry()) {
      const std::optional<Route> fewest =
          reach_.Within(kInfinity, rows, nodes_max_);
      if (!fewest.has_value()) {
        return std::nullopt;
      }
      TryCycles(*fewest, rows);
    }
    bool proven = reach_.exact();
    switch (objective) {
      case Objective::kThroughput:
        proven = proven && EqualRowsAndLinks() && converged_;
        break;
      case Objective::kLatency:
        proven = proven && EqualRowsAndLinks() && TryLoops();
        break;
      case Objective::kNodes:
        break;
      case Objective::kConcurrency:
      case Objective::kEnergy:
        proven = false;
        break;
    }
    if (!best_.has_value()) {
      return std::nullopt;
    }
    return StreamedRoute{*best_, proven ? BoundsFor(objective) : Bounds()};
  }

 private:
  // Rows of a micro-batch follow from the route: a ladder of them.
  [[nodiscard]] std::set<int64_t> RowsToTry() const {
    const size_t most = reach_.cost() > kLarge ? kRowsTriedLarge : kRowsTried;
    std::set<int64_t> rows = {1};
    for (int64_t each = concurrency_.value_or(1);
         each > 1 && rows.size() < most; each /= 2) {
      rows.insert(each);
    }
    return rows;
  }

  // Every micro-batch has one row, and every hop takes the same.
  [[nodiscard]] bool EqualRowsAndLinks() const {
    return concurrency_.value_or(1) == 1 && model_.cluster().links.empty();
  }

  void TryCycles(const Route& fewest, int64_t rows) {
    const double slowest = reach_.CycleOf(fewest, rows);
    Offer(fewest);
    const double least = TryLeastCycle(fewest, rows, nodes_max_);
    const int64_t between =
        reach_.cost() > kLarge ? kCyclesBetweenLarge : kCyclesBetween;
    for (int64_t i = 1; i < between && least > 0; ++i) {
      const double share =
          static_cast<double>(i) / static_cast<double>(between);
      if (const auto route = reach_.Within(
              least * std::pow(slowest / least, share), rows, nodes_max_)) {
        Offer(*route);
      }
    }
    TryLeastCycle(fewest, rows, static_cast<int64_t>(fewest.size()));
  }

  // Offers the route with the least cycle that up to so many nodes reach.
  double TryLeastCycle(const Route& first, int64_t rows, int64_t nodes_max) {
    const int64_t halvings = std::clamp(
        kWorkMax / reach_.cost() / static_cast<int64_t>(RowsToTry().size()) / 3,
        kHalvingsMin, kHalvingsMax);
    Route best = first;
    double low = 0;
    double high = reach_.CycleOf(first, rows);
    for (int64_t i = 0; i < halvings && high - low > kCycleTolerance * high;
         ++i) {
      const double middle = low + (high - low) / 2;
      if (std::optional<Route> route = reach_.Within(middle, rows, nodes_max)) {
        best = *std::move(route);
        high = std::min(middle, reach_.CycleOf(best, rows));
      } else {
        low = middle;
      }
    }
    converged_ = converged_ && high - low <= kEqualTimes * high;
    Offer(best);
    return high;
  }

  bool TryLoops() {
    const std::optional<Route> route =
        LeastLoop(nodes_, kinds_, *reach_.choices(), nodes_max_);
    if (route.has_value()) {
      Offer(*route);
    }
    return route.has_value();
  }

  void Offer(const Route& route) {
    if (static_cast<int64_t>(route.size()) > nodes_max_) {
      return;
    }
    const std::optional<ModelCosts> held = HeldCosts(nodes_, route);
    if (!held.has_value()) {
      return;
    }
    const CostModel model(*held, model_.cluster(), model_.context(),
                          [this](std::span<const LayerRun> runs) {
                            return model_.ScratchBytes(runs);
                          });
    const Measures measures = MeasureRoute(model, route, concurrency_);
    if (!best_.has_value() || Compare(criteria_, measures, measures_) < 0) {
      best_ = route;
      measures_ = measures;
    }
  }

  [[nodiscard]] Bounds BoundsFor(Objective objective) const {
    Bounds bounds;
    bounds.gap = 0;
    if (objective == Objective::kThroughput) {
      bounds.cycle_s = measures_.cycle_s;
      bounds.tokens_per_s = measures_.tokens_per_s;
    }
    if (objective == Objective::kNodes) {
      bounds.nodes_used = measures_.nodes_used;
    }
    return bounds;
  }

  const StreamedNodes& nodes_;
  const CostModel& model_;
  const std::vector<Criterion> criteria_;
  const std::optional<int64_t> concurrency_;
  const std::vector<NodeKind> kinds_;
  const int64_t nodes_max_;
  Reach reach_;
  std::optional<Route> best_;
  Measures measures_;
  bool converged_ = true;  // all halvings, to cycles that count as equal
};

}  // namespace

absl::StatusOr<std::optional<StreamedRoute>> SearchStreamed(
    const StreamedNodes& nodes, Objective objective,
    std::optional<int64_t> concurrency) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<Criterion> criteria,
                            CriteriaOf(objective, nodes.model()));
  if (nodes.model().num_nodes() <= nodes.model().cluster().SpareNodes()) {
    return std::optional<StreamedRoute>();
  }
  return Search(nodes, std::move(criteria), concurrency).Run(objective);
}

}  // namespace millrace::planner::streamed
