// Prints what `millrace plan` finds on the published examples beside what
// people do by hand, as the table of docs/numbers.md. No arguments.

#include <algorithm>
#include <cstdio>
#include <string>

#include "planner/placement/place.h"
#include "planner/plan_numbers.h"
#include "tests/bench/planner/plan_baselines.h"

namespace millrace::planner {
namespace {

struct Shown {
  Objective objective;
  const char* name;
};

constexpr Shown kShown[] = {
    {Objective::kThroughput, "tokens/s"},
    {Objective::kConcurrency, "sequences"},
    {Objective::kLatency, "ms a loop"},
    {Objective::kNodes, "nodes"},
    {Objective::kEnergy, "tokens/kJ"},
};

double ValueOf(Criterion criterion, const Measures& measures) {
  switch (criterion) {
    case Criterion::kLoop:
    case Criterion::kCycle:
      return 1000 * CostOf(criterion, measures);
    case Criterion::kTokensPerJoule:
      return -1000 * CostOf(criterion, measures);
    case Criterion::kNodesUsed:
      return CostOf(criterion, measures);
    case Criterion::kTokensPerSecond:
    case Criterion::kSequences:
      return -CostOf(criterion, measures);
  }
  return 0;
}

std::string Cell(Criterion criterion, const std::optional<Measures>& measures) {
  if (!measures.has_value()) {
    return "does not fit";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", ValueOf(criterion, *measures));
  return text;
}

// How much better the plan is than the best baseline, in percent.
std::string GainOf(Criterion criterion, const Measures& plan,
                   const testing::Baselines& baselines) {
  double best = 0;
  bool any = false;
  for (const auto& own :
       {baselines.even, baselines.by_memory, baselines.greedy}) {
    if (own.has_value()) {
      const double cost = CostOf(criterion, *own);
      best = any ? std::min(best, cost) : cost;
      any = true;
    }
  }
  if (!any) {
    return "only one";
  }
  // Costs are negative where more is better.
  const double cost = CostOf(criterion, plan);
  const double gain = cost < 0 ? cost / best - 1 : 1 - cost / best;
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * gain);
  return text;
}

int PrintExample(const testing::PlanExample& example) {
  const auto costs = testing::LoadExampleCosts(example.costs);
  const auto cluster = testing::LoadExampleCluster(example.cluster);
  if (!costs.ok() || !cluster.ok()) {
    std::fprintf(stderr, "%s %s: cannot be read\n", example.costs.c_str(),
                 example.cluster.c_str());
    return 1;
  }
  const CostModel model(*costs, *cluster, example.context);
  for (const Shown& shown : kShown) {
    const auto criteria = CriteriaOf(shown.objective, model);
    placement::PlacementOptions options;
    options.objective = shown.objective;
    const auto placed = placement::Place(model, options);
    if (!criteria.ok() || !placed.ok() || !placed->has_value()) {
      std::fprintf(stderr, "%s on %s: no plan\n", example.costs.c_str(),
                   example.cluster.c_str());
      return 1;
    }
    const Criterion first = criteria->front();
    const Measures plan = MeasureRoute(model, (*placed)->route, std::nullopt);
    const testing::Baselines by_hand = testing::BaselinesOf(model, *criteria);
    std::printf("| %s, %s | %s | %s | %s | %s | %s | %s | %.2g |\n",
                example.costs.c_str(), example.cluster.c_str(), shown.name,
                Cell(first, by_hand.even).c_str(),
                Cell(first, by_hand.by_memory).c_str(),
                Cell(first, by_hand.greedy).c_str(), Cell(first, plan).c_str(),
                GainOf(first, plan, by_hand).c_str(),
                (*placed)->bounds.gap.value_or(1));
  }
  return 0;
}

}  // namespace
}  // namespace millrace::planner

int main() {
  std::printf(
      "| model, cluster | best at | even | by memory | greedy | plan | gain | "
      "gap |\n|---|---|---|---|---|---|---|---|\n");
  int failed = 0;
  for (const auto& example : millrace::planner::testing::PlanExamples()) {
    failed |= millrace::planner::PrintExample(example);
  }
  return failed;
}
