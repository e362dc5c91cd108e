#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/cost_model.h"
#include "planner/criteria.h"
#include "planner/plan.h"

namespace millrace::planner {

// What a plan that fits comes to, in one sentence.
std::string VerdictOn(const CostModel& model, const Plan& plan);

// What an interleaved plan gains over the best contiguous one, as the end of a
// verdict; `contiguous`: nothing where no contiguous plan was found.
std::string GainOverContiguous(const Plan& plan,
                               const std::optional<Measures>& contiguous);

// Why a model with so many sequences finds no place: what is missing.
std::string WhyNot(const CostModel& model, int64_t sequences);

// Whatever else people should know of the numbers, a sentence each.
std::vector<std::string> NotesOn(const CostModel& model, const Plan& plan);

}  // namespace millrace::planner
