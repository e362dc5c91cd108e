#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost_model.h"
#include "planner/plan.h"

namespace millrace::planner {

// What objectives compare, of one route. Times are nothing where a field that
// they need is missing.
struct Measures {
  int64_t nodes_used = 0;
  std::optional<int64_t> sequences;  // nothing: unbounded
  std::optional<int64_t> rows;
  std::optional<int64_t> microbatches;
  std::optional<double> cycle_s;
  std::optional<double> loop_s;
  std::optional<double> tokens_per_s;  // nothing too where a cycle takes 0 s
  std::optional<double> watts;         // of the nodes used
};

enum class Criterion {
  kTokensPerSecond,  // most
  kNodesUsed,        // fewest
  kLoop,             // least
  kSequences,        // most
  kCycle,            // least
  kTokensPerJoule,   // most
};

// What an objective compares, in order, without the second and third ones that
// need a field which is missing: of any node, or with two nodes or more of any
// link. A first one that does is an InputError that names node and field.
absl::StatusOr<std::vector<Criterion>> CriteriaOf(Objective objective,
                                                  const CostModel& model);

// All of them, whatever is missing.
std::vector<Criterion> AllCriteriaOf(Objective objective);

// The field that makes times unknown, as "node a: memory_bandwidth"; empty
// where all are there.
std::string MissingForTimes(const CostModel& model);

// A criterion as a number of which less is better; -infinity for what nothing
// beats (sequences unbounded, no time at all). Must be known.
double CostOf(Criterion criterion, const Measures& measures);

// Times within this share of each other are equal.
inline constexpr double kEqualTimes = 1e-9;

// Below 0 where `a` is better, 0 where nothing tells them apart.
int Compare(std::span<const Criterion> criteria, const Measures& a,
            const Measures& b);

}  // namespace millrace::planner
