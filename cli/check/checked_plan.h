#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::cli {

// What `check` needs of a plan file.
struct CheckedPlan {
  struct Stage {
    std::string node;
    int64_t resident_bytes = 0;  // of its worker's process, once loaded
  };
  // Two nodes between which frames go, in either direction.
  struct Hop {
    std::string from, to;
    std::optional<double> bandwidth;  // that the plan counts with
    std::optional<double> latency_s;
  };

  std::string model_name;
  std::string model_digest;
  std::string model_path;  // empty: the plan does not say
  std::vector<Stage> stages;
  std::vector<Hop> hops;  // each pair once, in the order of the route
};

// InputError naming `object` and the key: no plan file, one made from a cost
// file, or one of a model that does not fit.
absl::StatusOr<CheckedPlan> ReadCheckedPlan(absl::string_view text,
                                            absl::string_view object);

}  // namespace millrace::cli
