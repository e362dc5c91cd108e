#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "planner/model_sheet.h"

namespace millrace::planner {

// Whether a config.json is of a family that is planned for without the engine
// running it. InputError where `model_type` is no name.
absl::StatusOr<bool> IsPlannedFamily(const JsonObject& config);

// Weights, KV and state that the config.json of such a family describes; name
// left empty. InputError naming file, key and remedy, for sizes that are
// missing, wrong, or absurd together.
absl::StatusOr<ModelSheet> ReadConfigSheet(const JsonObject& config,
                                           const std::string& object);

// Names for `model_type`, ascending.
std::vector<std::string> PlannedFamilies();

}  // namespace millrace::planner
