#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/costs.h"

namespace millrace::planner {

// What a CostModel relies on: layers from 1 to kLayersMax, values within their
// ranges, sums of bytes below 2^63, at most kExpertClassesMax kinds of experts
// and kFormatsMax formats. An InputError names `object` and the field.
absl::Status CheckCosts(const ModelCosts& costs, absl::string_view object);

}  // namespace millrace::planner
