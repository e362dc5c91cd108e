#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "proto/node_messages.h"

namespace millrace::cli {

// What this process answers on its node service (stage-worker/server), for
// `stage-worker --control` and `probe --listen`.

struct NodeIdentity {
  std::string name;
  kernels::Isa isa = kernels::Isa::kScalar;
  int num_threads = 1;
  int64_t memory_bytes = 0;  // budget; 0: not limited
};
// As of now; without stage and data address.
control::NodeDescription DescribeNode(const NodeIdentity& identity);

// Opens a checkpoint: its own path, or its last part in `models_dir`.
// InputError where it is missing or damaged.
absl::StatusOr<control::ModelDescription> DescribeModel(
    const std::string& models_dir, const std::string& model);

// A quick measurement of everything.
absl::StatusOr<control::NodeRates> MeasureRates(const NodeIdentity& identity);

}  // namespace millrace::cli
