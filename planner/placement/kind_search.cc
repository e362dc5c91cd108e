#include "planner/placement/kind_search.h"

#include <algorithm>
#include <limits>

#include "planner/placement/kind_paths.h"
#include "planner/placement/kind_reach.h"

namespace millrace::planner::placement {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Steps of the search for the least energy, which looks at every run.
constexpr double kEnergySteps = 2e9;

class KindSearch {
 public:
  KindSearch(const Problem& problem, const Floors& floors,
             const KindStates& states, int64_t rows, Judge& judge)
      : problem_(problem),
        floors_(floors),
        states_(states),
        rows_(rows),
        judge_(judge),
        reach_(problem, states, rows) {}

  Proof Run(Objective objective) {
    const int64_t n = problem_.sequences();
    reach_.Fill({kInfinity, n});
    const auto fewest = reach_.FewestNodes(problem_.nodes_max());
    if (!fewest.has_value()) {
      return {true, true};
    }
    judge_.Offer(reach_.RouteOf(*fewest));
    switch (objective) {
      case Objective::kThroughput:
        return Throughput();
      case Objective::kConcurrency:
        return LeastCycleOf(MostSequences(), problem_.nodes_max());
      case Objective::kNodes:
        return LeastCycleOf(n, *fewest);
      case Objective::kLatency:
        return Latency();
      case Objective::kEnergy:
        return Energy();
    }
    return {};
  }

 private:
  // Whether times are those that the plan will have.
  [[nodiscard]] bool times_exact() const { return !problem_.rows_vary(); }

  int64_t MostSequences() {
    const int64_t n = problem_.sequences();
    if (problem_.Need(0, problem_.num_layers()) == 0) {
      return n;
    }
    const int64_t known = judge_.best()->measures.sequences.value_or(n);
    return reach_.MostSequences(std::max(n, known), floors_.most_sequences());
  }

  Proof LeastCycleOf(int64_t sequences, int64_t nodes_max) {
    judge_.Offer(reach_.LeastCycle(sequences, nodes_max,
                                   problem_.timed() ? floors_.cycle_s() : 0));
    return {times_exact(), true};
  }

  Proof Throughput() {
    const int64_t n = problem_.sequences();
    const auto route =
        reach_.LeastCycle(n, problem_.nodes_max(), floors_.cycle_s());
    judge_.Offer(route);
    const Limits limits = {reach_.CycleOf(*route) * (1 + kEqualTimes), n};
    reach_.Fill(limits);
    const int64_t fewest =
        reach_.FewestNodes(problem_.nodes_max()).value_or(problem_.nodes_max());
    judge_.Offer(reach_.RouteOf(fewest));
    if (!KindPaths::Affordable(problem_, states_)) {
      return {false, times_exact()};
    }
    KindPaths paths(problem_, states_, rows_);
    judge_.Offer(paths.LeastLoop(limits, fewest, fewest));
    return {times_exact(), times_exact()};
  }

  Proof Latency() {
    if (!KindPaths::Affordable(problem_, states_)) {
      return {};
    }
    KindPaths paths(problem_, states_, rows_);
    judge_.Offer(paths.LeastLoop({kInfinity, problem_.sequences()}, 1,
                                 problem_.nodes_max()));
    return {times_exact(), times_exact()};
  }

  Proof Energy() {
    const auto layers = static_cast<double>(problem_.num_layers());
    const double steps = static_cast<double>(states_.size()) *
                         static_cast<double>(states_.num_kinds()) * layers *
                         layers / 2;
    if (!KindPaths::Affordable(problem_, states_) || steps > kEnergySteps) {
      return {};
    }
    KindPaths paths(problem_, states_, rows_);
    const Measures& best = judge_.best()->measures;
    const double known =
        times_exact() ? *best.watts * *best.cycle_s : kInfinity;
    judge_.Offer(paths.LeastEnergy(problem_.sequences(), known));
    return {times_exact(), times_exact()};
  }

  const Problem& problem_;
  const Floors& floors_;
  const KindStates& states_;
  const int64_t rows_;
  Judge& judge_;
  KindReach reach_;
};

}  // namespace

Proof SearchByKinds(const Problem& problem, const Floors& floors,
                    const KindStates& states, Objective objective, int64_t rows,
                    Judge& judge) {
  return KindSearch(problem, floors, states, rows, judge).Run(objective);
}

}  // namespace millrace::planner::placement
