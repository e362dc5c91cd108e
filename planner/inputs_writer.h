#pragma once

#include "boost/json/object.hpp"
#include "planner/cluster.h"
#include "planner/costs.h"

namespace millrace::planner {

// As the files that ParseCluster and ParseCosts read; reading them gives the
// same numbers bit for bit.
boost::json::object ClusterToJson(const Cluster& cluster);
boost::json::object CostsToJson(const ModelCosts& costs);

}  // namespace millrace::planner
