#include "planner/replan/replan.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "planner/criteria.h"
#include "planner/plan_numbers.h"
#include "planner/plan_once.h"
#include "planner/plan_verdict.h"
#include "planner/planner.h"
#include "planner/replan/fewest_bytes.h"
#include "planner/replan/same_kind.h"
#include "planner/replan/survivors.h"

namespace millrace::planner::replan {
namespace {

using placement::Problem;
using placement::Route;
using placement::Speeds;

PlanInput InputOf(const PlanFile& file, const Cluster& cluster,
                  const PlanOptions& options) {
  PlanInput input;
  input.costs = &file.costs;
  input.cluster = &cluster;
  input.options = &options;
  input.scratch = file.scratch;
  // Plans of models are made so where speeds are unknown.
  input.unknown_speeds_are_equal = options.objective == Objective::kThroughput;
  return input;
}

CostModel ModelOf(const PlanInput& input) {
  return CostModel(*input.costs, *input.cluster, input.options->contexts[0],
                   input.scratch);
}

// What the objective compares; of unknown speeds as if all were equal.
absl::StatusOr<Problem> ProblemOf(const CostModel& model,
                                  const PlanInput& input) {
  absl::StatusOr<std::vector<Criterion>> criteria =
      CriteriaOf(input.options->objective, model);
  const bool nominal = !criteria.ok() && input.unknown_speeds_are_equal;
  if (nominal) {
    criteria = AllCriteriaOf(input.options->objective);
  }
  MILLRACE_RETURN_IF_ERROR(criteria.status());
  return Problem(model, *criteria, input.options->concurrency,
                 nominal ? Speeds::kEqual : Speeds::kGiven);
}

bool IsContiguous(const Route& route) {
  std::set<int64_t> nodes;
  for (const RouteEntry& entry : route) {
    if (!nodes.insert(entry.node).second) {
      return false;
    }
  }
  return true;
}

// Takes another route; what does not follow from it stays.
void SetRoute(const CostModel& model, const PlanOptions& options, Route route,
              Plan& plan) {
  plan.fits = true;
  plan.objective = options.objective;
  plan.route = std::move(route);
  plan.placement = options.placement == PlacementKind::kInterleaved ||
                           !IsContiguous(plan.route)
                       ? PlacementKind::kInterleaved
                       : PlacementKind::kContiguous;
  FillNumbers(model, options, plan);
  plan.verdict = VerdictOn(model, plan);
  plan.notes = NotesOn(model, plan);
}

std::vector<Route> KnownRoutes(const Plan& best) {
  return best.fits ? std::vector<Route>{best.route} : std::vector<Route>();
}

// Whether `a` is at least as good by the objective.
bool NoWorse(const Problem& problem, const Route& a, const Route& b) {
  placement::Judge judge(problem);
  const std::optional<Measures> of_a = judge.Measure(a);
  const std::optional<Measures> of_b = judge.Measure(b);
  return of_a.has_value() &&
         (!of_b.has_value() || judge.Compare(*of_a, *of_b) <= 0);
}

// Nodes that were kept for this stand in, and are said to.
void NoteSpares(int64_t before, const Cluster& cluster, Plan& plan) {
  if (before > cluster.SpareNodes()) {
    plan.notes.push_back(absl::StrCat(
        "the constraint spare keeps ", Counted(cluster.SpareNodes(), "node"),
        " unused instead of ", before, ": spares stand in for lost ones"));
  }
}

}  // namespace

absl::StatusOr<Replanned> PlanWithoutNodes(const PlanFile& file,
                                           std::span<const int64_t> lost) {
  Survivors survivors = WithoutNodes(file.cluster, lost);
  Replanned out;
  out.cluster = survivors.cluster;
  out.options = file.options;
  const PlanInput input = InputOf(file, out.cluster, out.options);
  const CostModel model = ModelOf(input);
  MILLRACE_ASSIGN_OR_RETURN(const Problem problem, ProblemOf(model, input));
  const HeldLayers held(
      model, HoldersOf(file.plan.route, survivors, model.num_layers()));
  MILLRACE_ASSIGN_OR_RETURN(out.best, PlanOnce(input));
  if (out.best.fits) {
    SetRoute(model, out.options,
             WithHoldersFirst(problem, held, out.best.route), out.best);
  }
  const std::optional<FewestBytes> fewest = FindFewestBytes(
      problem, held, out.options.placement == PlacementKind::kContiguous,
      KnownRoutes(out.best));
  if (!fewest.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(out.plan, MakePlan(input));
    NoteSpares(file.cluster.SpareNodes(), out.cluster, out.plan);
    return out;
  }
  out.plan.bounds = out.best.bounds;
  SetRoute(model, out.options, fewest->route, out.plan);
  if (!out.best.fits || NoWorse(problem, fewest->route, out.best.route)) {
    out.best = out.plan;
  } else {
    out.plan.bounds.gap.reset();
  }
  NoteSpares(file.cluster.SpareNodes(), out.cluster, out.plan);
  out.moved = held.MovedBy(out.plan.route);
  out.best_moved = held.MovedBy(out.best.route);
  out.bound_bytes = fewest->bound;
  out.exact = fewest->exact;
  return out;
}

absl::StatusOr<PlanForLoad> PlanAnewFor(const PlanFile& file,
                                        const PlanOptions& options) {
  const PlanInput input = InputOf(file, file.cluster, options);
  const CostModel model = ModelOf(input);
  MILLRACE_ASSIGN_OR_RETURN(const Problem problem, ProblemOf(model, input));
  PlanForLoad out;
  MILLRACE_ASSIGN_OR_RETURN(out.plan, MakePlan(input));
  placement::Judge judge(problem);
  out.keep.objective = options.objective;
  out.keep.placement = file.plan.placement;
  if (judge.Measure(file.plan.route).has_value()) {
    SetRoute(model, options, file.plan.route, out.keep);
  } else {
    const std::vector<NodeRuns> nodes = RunsByNode(file.plan.route);
    for (const int64_t context : options.contexts) {
      out.keep.concurrency.push_back(ConcurrencyAt(model, nodes, context));
    }
  }
  if (!out.plan.fits && !out.keep.fits) {
    return out;
  }
  const HeldLayers held(
      model, HoldersOf(file.plan.route, WithoutNodes(file.cluster, {}),
                       model.num_layers()));
  if (out.keep.fits &&
      (!out.plan.fits || NoWorse(problem, out.keep.route, out.plan.route))) {
    const Plan found = std::exchange(out.plan, out.keep);
    out.plan.bounds = found.bounds;
    out.plan.advice = found.advice;
  } else if (Route route = WithHoldersFirst(problem, held, out.plan.route);
             held.BytesOf(route) < held.BytesOf(out.plan.route)) {
    SetRoute(model, options, std::move(route), out.plan);
  }
  out.moved = held.MovedBy(out.plan.route);
  return out;
}

}  // namespace millrace::planner::replan
