#include "planner/placement/place.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/placement/search.h"

namespace millrace::planner::placement {
namespace {

// A gap below this is one of rounding.
constexpr double kNoGap = 1e-9;

bool IsContiguous(const std::vector<RouteEntry>& route) {
  std::set<int64_t> nodes;
  return std::all_of(route.begin(), route.end(), [&](const RouteEntry& entry) {
    return nodes.insert(entry.node).second;
  });
}

std::optional<double> Finite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

// 1 - plan / bound, or bound / plan where less is better; nothing where the
// bound says nothing.
std::optional<double> GapOf(const Problem& problem, const Floors& floors,
                            const Measures& best) {
  const auto gap = [](double low, double high) {
    const double share = high > 0 ? 1 - low / high : 0;
    return share >= 1 ? std::optional<double>()
                      : std::optional<double>(share > kNoGap ? share : 0);
  };
  switch (problem.criteria().front()) {
    case Criterion::kNodesUsed:
      return gap(static_cast<double>(floors.nodes()),
                 static_cast<double>(best.nodes_used));
    case Criterion::kSequences:
      return best.sequences.has_value()
                 ? gap(static_cast<double>(*best.sequences),
                       static_cast<double>(floors.most_sequences()))
                 : std::optional<double>(0);
    case Criterion::kCycle:
      return gap(floors.cycle_s(), *best.cycle_s);
    case Criterion::kLoop:
      return gap(floors.loop_s(), *best.loop_s);
    case Criterion::kTokensPerSecond:
      return best.tokens_per_s.has_value()
                 ? gap(*best.tokens_per_s, floors.tokens_per_s())
                 : std::optional<double>(0);
    case Criterion::kTokensPerJoule:
      return best.tokens_per_s.has_value()
                 ? gap(*best.tokens_per_s / *best.watts,
                       floors.tokens_per_joule())
                 : std::optional<double>(0);
  }
  return 0;
}

Bounds BoundsOf(const Problem& problem, const Floors& floors,
                const Proof& proof, const Measures& best) {
  // Never beyond the plan itself: sums in another order differ by a hair.
  Bounds bounds;
  bounds.nodes_used = std::min(best.nodes_used, floors.nodes());
  if (best.sequences.has_value()) {
    bounds.sequences = std::max(*best.sequences, floors.most_sequences());
  }
  if (problem.timed()) {
    bounds.cycle_s = std::min(*best.cycle_s, floors.cycle_s());
    if (best.tokens_per_s.has_value()) {
      bounds.tokens_per_s =
          Finite(std::max(*best.tokens_per_s, floors.tokens_per_s()));
    }
  }
  bounds.gap =
      proof.first ? std::optional<double>(0) : GapOf(problem, floors, best);
  if (!proof.first) {
    return bounds;
  }
  switch (problem.criteria().front()) {
    case Criterion::kNodesUsed:
      bounds.nodes_used = best.nodes_used;
      break;
    case Criterion::kSequences:
      bounds.sequences = best.sequences;
      break;
    case Criterion::kTokensPerSecond:
      bounds.tokens_per_s = best.tokens_per_s;
      if (!problem.rows_vary()) {
        bounds.cycle_s = best.cycle_s;
      }
      break;
    case Criterion::kCycle:
    case Criterion::kLoop:
    case Criterion::kTokensPerJoule:
      break;
  }
  return bounds;
}

}  // namespace

absl::StatusOr<std::optional<Placement>> Place(
    const CostModel& model, const PlacementOptions& options) {
  absl::StatusOr<std::vector<Criterion>> criteria =
      CriteriaOf(options.objective, model);
  const bool nominal = !criteria.ok();
  if (nominal && !options.unknown_speeds_are_equal) {
    return criteria.status();
  }
  if (model.num_layers() == 0 ||
      model.num_nodes() <= model.cluster().SpareNodes()) {
    return std::optional<Placement>();
  }
  const Problem problem(
      model, nominal ? AllCriteriaOf(options.objective) : *criteria,
      options.concurrency, nominal ? Speeds::kEqual : Speeds::kGiven);
  const Floors floors(problem);
  if (floors.nodes() > problem.nodes_max()) {
    return std::optional<Placement>();
  }
  Judge judge(problem);
  Proof proof = SearchContiguous(problem, floors, options.objective, judge);
  if (options.placement != PlacementKind::kContiguous) {
    proof = SearchInterleaved(problem, floors, options.objective, judge);
  }
  if (!judge.best().has_value()) {
    return std::optional<Placement>();
  }
  Placement placement;
  placement.route = judge.best()->route;
  placement.kind = options.placement == PlacementKind::kInterleaved ||
                           !IsContiguous(placement.route)
                       ? PlacementKind::kInterleaved
                       : PlacementKind::kContiguous;
  placement.exact = proof.all;
  placement.bounds = BoundsOf(problem, floors, proof, judge.best()->measures);
  return std::optional<Placement>(std::move(placement));
}

}  // namespace millrace::planner::placement
