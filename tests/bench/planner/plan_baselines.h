#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cluster.h"
#include "planner/cost_model.h"
#include "planner/costs.h"
#include "planner/criteria.h"
#include "planner/plan.h"

namespace millrace::planner::testing {

// A pair of the files under deploy/examples/plans and the length of its
// sequences.
struct PlanExample {
  std::string costs;
  std::string cluster;
  int64_t context = 0;
};

// All that are published with numbers.
std::vector<PlanExample> PlanExamples();

absl::StatusOr<ModelCosts> LoadExampleCosts(const std::string& name);
absl::StatusOr<Cluster> LoadExampleCluster(const std::string& name);

// What people do by hand, each over the nodes as the cluster file has them, the
// fastest first and the roomiest first, the best of the three; contiguous.
// Nothing where none fits.
struct Baselines {
  std::optional<Measures> even;       // as many layers for every node
  std::optional<Measures> by_memory;  // layers by a node's share of the memory
  std::optional<Measures> greedy;     // each node filled within a cycle time
};

Baselines BaselinesOf(const CostModel& model,
                      const std::vector<Criterion>& criteria);

}  // namespace millrace::planner::testing
