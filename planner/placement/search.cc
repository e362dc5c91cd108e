#include "planner/placement/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "planner/placement/enumerate.h"
#include "planner/placement/order_search.h"
#include "planner/placement/pack_search.h"
#include "planner/placement/polish.h"

namespace millrace::planner::placement {
namespace {

// Layers up to which all routes are tried: recursion is as deep.
constexpr int64_t kEnumeratedLayersMax = 64;
// Partial routes tried: all of six different nodes and ten layers, contiguous,
// and all of 4^9 ways to put nine layers on four nodes, and then some.
constexpr int64_t kContiguousSteps = 2'000'000;
constexpr int64_t kInterleavedSteps = 2'000'000;
// Where that is hopeless bounds may still end the search early.
constexpr int64_t kHopelessSteps = 200'000;
// A quarter of a second each.
constexpr int64_t kClimbSteps = 1'000'000;
constexpr int64_t kPolishSteps = 1'500'000;
constexpr int64_t kRepairSteps = 1'500'000;
// Different numbers of rows that are tried.
constexpr size_t kRowsTried = 8;
// The same where nodes times layers are more than this.
constexpr int64_t kLarge = 200'000;
constexpr size_t kRowsTriedLarge = 3;

// Whether all ways to put layers onto nodes are few enough to try.
bool Enumerable(const Problem& problem, int64_t steps) {
  return std::pow(static_cast<double>(problem.model().num_nodes()),
                  static_cast<double>(problem.num_layers())) <=
         static_cast<double>(steps) / 2;
}

bool EnumerateWithin(const Problem& problem, bool interleaved, int64_t steps,
                     Judge& judge) {
  return problem.num_layers() <= kEnumeratedLayersMax &&
         EnumerateRoutes(problem, interleaved, steps, judge);
}

// Numbers of rows worth a search of their own: those of the best routes, and a
// ladder down from all sequences at once.
class RowsToTry {
 public:
  explicit RowsToTry(const Problem& problem)
      : problem_(problem),
        most_(problem.model().num_nodes() > kLarge / problem.num_layers()
                  ? kRowsTriedLarge
                  : kRowsTried) {
    if (problem.rows_vary()) {
      for (int64_t rows = *problem.concurrency() / 2; rows > 1; rows /= 2) {
        ladder_.push_back(rows);
      }
      ladder_.push_back(*problem.concurrency());
    }
  }

  // The next one; 0: no more.
  int64_t Next(const Judge& judge) {
    if (tried_.empty()) {
      tried_.insert(1);
      return 1;
    }
    if (!problem_.rows_vary() || tried_.size() >= most_) {
      return 0;
    }
    if (judge.best().has_value()) {
      const int64_t rows = judge.best()->measures.rows.value_or(1);
      if (tried_.insert(rows).second) {
        return rows;
      }
    }
    while (!ladder_.empty()) {
      const int64_t rows = ladder_.back();
      ladder_.pop_back();
      if (tried_.insert(rows).second) {
        return rows;
      }
    }
    return 0;
  }

 private:
  const Problem& problem_;
  const size_t most_;
  std::set<int64_t> tried_;
  std::vector<int64_t> ladder_;
};

Proof Either(const Proof& a, const Proof& b) {
  return {a.all || b.all, a.first || b.first};
}

}  // namespace

Proof ProofByFloors(const Problem& problem, const Floors& floors,
                    const Judge& judge) {
  if (!judge.best().has_value()) {
    return {};
  }
  const Measures& best = judge.best()->measures;
  Proof proof = {true, true};
  for (size_t i = 0; i < problem.criteria().size(); ++i) {
    Measures floor = best;
    switch (problem.criteria()[i]) {
      case Criterion::kNodesUsed:
        floor.nodes_used = floors.nodes();
        break;
      case Criterion::kSequences:
        if (best.sequences.has_value()) {
          floor.sequences = floors.most_sequences();
        }
        break;
      case Criterion::kCycle:
        floor.cycle_s = floors.cycle_s();
        break;
      case Criterion::kLoop:
        floor.loop_s = floors.loop_s();
        break;
      case Criterion::kTokensPerSecond:
        floor.tokens_per_s = floors.tokens_per_s();
        break;
      case Criterion::kTokensPerJoule:
        floor.tokens_per_s = floors.tokens_per_joule() * *best.watts;
        break;
    }
    const bool met =
        planner::Compare(problem.criteria().subspan(i, 1), best, floor) <= 0;
    proof.all = proof.all && met;
    proof.first = proof.first && (met || i > 0);
  }
  return proof;
}

Proof SearchContiguous(const Problem& problem, const Floors& floors,
                       Objective objective, Judge& judge) {
  Proof proof;
  const auto states = problem.equal_links() ? KindStates::Create(problem)
                                            : std::optional<KindStates>();
  RowsToTry rows_to_try(problem);
  std::map<int64_t, OrderSearch> climbers;
  while (const int64_t rows = rows_to_try.Next(judge)) {
    climbers.try_emplace(rows, problem, floors, objective, rows, judge)
        .first->second.Begin();
    if (states.has_value()) {
      proof = Either(proof, SearchByKinds(problem, floors, *states, objective,
                                          rows, judge));
    }
    if (proof.all) {
      return proof;
    }
  }
  if (EnumerateWithin(
          problem, false,
          problem.num_layers() <= 12 || problem.model().num_nodes() <= 12
              ? kContiguousSteps
              : kHopelessSteps,
          judge)) {
    return {true, true};
  }
  proof = Either(proof, ProofByFloors(problem, floors, judge));
  if (proof.all) {
    return proof;
  }
  const int64_t rows =
      judge.best().has_value() ? judge.best()->measures.rows.value_or(1) : 1;
  const auto climber = climbers.find(rows);
  (climber == climbers.end() ? climbers.begin() : climber)
      ->second.Climb(kClimbSteps);
  PolishRoute(problem, false, kPolishSteps, judge);
  return Either(proof, ProofByFloors(problem, floors, judge));
}

Proof SearchInterleaved(const Problem& problem, const Floors& floors,
                        Objective objective, Judge& judge) {
  Proof proof = ProofByFloors(problem, floors, judge);
  if (proof.all) {
    return proof;
  }
  if (problem.model().num_nodes() == 1) {
    return {true, true};  // All on it is the only route there is.
  }
  if (Enumerable(problem, kInterleavedSteps) &&
      EnumerateWithin(problem, true, 4 * kInterleavedSteps, judge)) {
    return {true, true};
  }
  RowsToTry rows_to_try(problem);
  while (const int64_t rows = rows_to_try.Next(judge)) {
    PackSearch(problem, floors, objective, rows, judge).Begin();
  }
  const int64_t rows =
      judge.best().has_value() ? judge.best()->measures.rows.value_or(1) : 1;
  PackSearch(problem, floors, objective, rows, judge).Improve(kRepairSteps);
  PolishRoute(problem, true, kPolishSteps, judge);
  proof = ProofByFloors(problem, floors, judge);
  if (!proof.all && EnumerateWithin(problem, true, kHopelessSteps, judge)) {
    return {true, true};
  }
  return proof;
}

}  // namespace millrace::planner::placement
