#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "planner/plan.h"

namespace millrace::planner {

// As the command line and plan files write them.
const char* NameOf(Objective objective);
const char* NameOf(PlacementKind placement);
const char* NameOf(BindingKind binding);

// Nothing for other names.
std::optional<Objective> ObjectiveNamed(absl::string_view name);
std::optional<PlacementKind> PlacementNamed(absl::string_view name);

}  // namespace millrace::planner
