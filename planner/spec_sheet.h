#pragma once

#include "model/spec/model_spec.h"
#include "planner/model_sheet.h"

namespace millrace::planner {

// The weights of a model that the engine runs. Experts of a layer count as
// large as the largest of them.
ModelSheet SheetOfSpec(const model::ModelSpec& spec);

}  // namespace millrace::planner
