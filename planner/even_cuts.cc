#include "planner/even_cuts.h"

#include "base/check.h"
#include "planner/layer_costs.h"
#include "planner/segment_cuts.h"

namespace millrace::planner {

std::vector<int64_t> EvenStages(const model::ModelSpec& spec,
                                int64_t num_stages) {
  const LayerCosts costs(spec);
  const auto cuts = CutSegments(
      costs.num_layers(), num_stages, [&](int64_t, int64_t begin, int64_t end) {
        return std::optional<double>(costs.NominalCost(begin, end));
      });
  MILLRACE_CHECK(cuts.has_value());
  return *cuts;
}

}  // namespace millrace::planner
