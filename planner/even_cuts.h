#pragma once

#include <cstdint>
#include <vector>

#include "model/spec/model_spec.h"

namespace millrace::planner {

// First layers of the stages when `num_stages` equal nodes share a model: the
// slowest stage is as fast as it can be, by LayerCosts::NominalCost. Exact
// (CutSegments). 1 <= num_stages <= number of layers.
std::vector<int64_t> EvenStages(const model::ModelSpec& spec,
                                int64_t num_stages);

}  // namespace millrace::planner
