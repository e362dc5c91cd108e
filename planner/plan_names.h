#pragma once

#include "planner/plan.h"

namespace millrace::planner {

// As the command line and plan files write them.
const char* NameOf(Objective objective);
const char* NameOf(PlacementKind placement);
const char* NameOf(BindingKind binding);

}  // namespace millrace::planner
