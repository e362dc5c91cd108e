#include "planner/cluster.h"

namespace millrace::planner {

std::optional<double> Node::ComputeRate(const std::string& format) const {
  auto found = compute.find(format);
  if (found == compute.end()) {
    found = compute.find(kComputeDefault);
  }
  return found == compute.end() ? std::nullopt
                                : std::optional<double>(found->second);
}

int64_t Cluster::SpareNodes() const {
  int64_t spare = 0;
  for (const Constraint& constraint : constraints) {
    spare += constraint.spare_nodes;
  }
  return spare;
}

}  // namespace millrace::planner
