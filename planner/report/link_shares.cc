#include "planner/report/link_shares.h"

#include <utility>

#include "absl/container/flat_hash_map.h"

namespace millrace::planner::report {

std::vector<LinkShare> LinkSharesOf(const CostModel& model, const Plan& plan) {
  std::vector<LinkShare> links;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, size_t> place;
  for (size_t i = 1; i < plan.route.size(); ++i) {
    const RouteEntry& from = plan.route[i - 1];
    const RouteEntry& to = plan.route[i];
    if (from.node == to.node) {
      continue;
    }
    const auto [found, is_new] =
        place.emplace(std::pair(from.node, to.node), links.size());
    if (is_new) {
      links.push_back({from.node, to.node, 0, 0.0});
    }
    LinkShare& link = links[found->second];
    ++link.hops;
    const Link& hardware = model.LinkBetween(from.node, to.node);
    if (!hardware.bandwidth.has_value() || !plan.rows.has_value()) {
      link.occupancy_s.reset();
    } else if (link.occupancy_s.has_value()) {
      *link.occupancy_s += static_cast<double>(*plan.rows) *
                           model.CutBytes(to.first_layer) / *hardware.bandwidth;
    }
  }
  return links;
}

}  // namespace millrace::planner::report
