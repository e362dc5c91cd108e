#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/json.h"
#include "cli/plan_inputs.h"
#include "cli/plan_verify.h"
#include "planner/plan.h"

namespace millrace::cli {

// Writes `plan` as an HTML page to `path`, whole or not at all; `document` is
// the same plan as JSON.
absl::Status WritePlanPage(const planner::Plan& plan, const PlanInputs& inputs,
                           const Json& document,
                           const std::optional<Verification>& verification,
                           const std::string& path);

}  // namespace millrace::cli
