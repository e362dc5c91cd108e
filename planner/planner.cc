#include "planner/planner.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "planner/cost_model.h"
#include "planner/costs_check.h"
#include "planner/criteria.h"
#include "planner/placement/place.h"
#include "planner/plan_advice.h"
#include "planner/plan_numbers.h"
#include "planner/plan_once.h"
#include "planner/plan_verdict.h"
#include "planner/streamed/plan_streamed.h"

namespace millrace::planner {
namespace {

CostModel ModelOf(const PlanInput& input) {
  return CostModel(*input.costs, *input.cluster, input.options->contexts[0],
                   input.scratch);
}

absl::StatusOr<std::optional<placement::Placement>> PlaceAs(
    const CostModel& model, const PlanInput& input, PlacementKind kind) {
  placement::PlacementOptions options;
  options.objective = input.options->objective;
  options.placement = kind;
  options.concurrency = input.options->concurrency;
  options.unknown_speeds_are_equal = input.unknown_speeds_are_equal;
  return placement::Place(model, options);
}

absl::StatusOr<Plan> PlanWith(const CostModel& model, const PlanInput& input) {
  Plan plan;
  plan.objective = input.options->objective;
  plan.placement = input.options->placement;
  MILLRACE_ASSIGN_OR_RETURN(std::optional<placement::Placement> placement,
                            PlaceAs(model, input, input.options->placement));
  if (!placement.has_value()) {
    // Nothing was chosen; never `auto`.
    if (plan.placement == PlacementKind::kAuto) {
      plan.placement = PlacementKind::kContiguous;
    }
    return plan;
  }
  plan.fits = true;
  plan.placement = placement->kind;
  plan.route = std::move(placement->route);
  plan.bounds = placement->bounds;
  FillNumbers(model, *input.options, plan);
  return plan;
}

// What interleaving brings, where it was chosen.
absl::StatusOr<std::string> ComparedWithContiguous(const CostModel& model,
                                                   const PlanInput& input,
                                                   const Plan& plan) {
  if (!plan.fits || plan.placement != PlacementKind::kInterleaved) {
    return std::string();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const std::optional<placement::Placement> contiguous,
      PlaceAs(model, input, PlacementKind::kContiguous));
  return GainOverContiguous(
      plan, contiguous.has_value()
                ? std::optional<Measures>(MeasureRoute(
                      model, contiguous->route, input.options->concurrency))
                : std::nullopt);
}

}  // namespace

absl::StatusOr<Plan> PlanOnce(const PlanInput& input) {
  return input.options->placement == PlacementKind::kStreamed
             ? streamed::PlanStreamedOnce(input)
             : PlanWith(ModelOf(input), input);
}

absl::StatusOr<Plan> MakePlan(const PlanInput& input) {
  MILLRACE_RETURN_IF_ERROR(CheckCosts(*input.costs, input.costs->name));
  if (input.options->placement == PlacementKind::kStreamed) {
    MILLRACE_ASSIGN_OR_RETURN(Plan plan, streamed::PlanStreamedOnce(input));
    streamed::DescribeStreamed(input, plan);
    plan.advice = AdviceFor(input, plan);
    return plan;
  }
  const CostModel model = ModelOf(input);
  MILLRACE_ASSIGN_OR_RETURN(Plan plan, PlanWith(model, input));
  MILLRACE_ASSIGN_OR_RETURN(const std::string compared,
                            ComparedWithContiguous(model, input, plan));
  plan.verdict = plan.fits ? absl::StrCat(VerdictOn(model, plan), compared)
                           : WhyNot(model, input.options->sequences());
  plan.notes = NotesOn(model, plan);
  plan.advice = AdviceFor(input, plan);
  return plan;
}

}  // namespace millrace::planner
