#include "cli/plan_page.h"

#include "base/file.h"
#include "boost/json/object.hpp"
#include "planner/report/page.h"
#include "planner/streamed/held_costs.h"

namespace millrace::cli {

absl::Status WritePlanPage(const planner::Plan& plan, const PlanInputs& inputs,
                           const Json& document,
                           const std::optional<Verification>& verification,
                           const std::string& path) {
  planner::report::ReportInput report;
  report.plan = &plan;
  const planner::ModelCosts costs = planner::streamed::CostsOfPlan(
      inputs.costs, inputs.cluster, inputs.options, plan);
  report.costs = &costs;
  report.cluster = &inputs.cluster;
  report.options = &inputs.options;
  report.scratch = inputs.scratch;
  report.provenance = &document.as_object().at("provenance").as_object();
  if (inputs.model != nullptr && inputs.model->spec.context_length > 0) {
    report.context_max = inputs.model->spec.context_length;
  }
  if (verification.has_value()) {
    const auto both = [](const Verified& number) {
      return planner::report::Comparison{number.predicted, number.measured};
    };
    report.measured = planner::report::MeasuredPlan{
        verification->sequences, both(verification->tokens_per_s),
        both(verification->tpot_s)};
  }
  return WriteFileAtomically(path, planner::report::HtmlReport(report));
}

}  // namespace millrace::cli
