#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/bench/node_entry.h"
#include "cli/compute_options.h"
#include "cli/console.h"

namespace millrace::cli {

struct ModelProbeOptions {
  std::string model;
  ComputeFlags compute;  // threads, kernels
  bool quick = false;
};

// Measures this node by whole passes of a model that it can hold, so that what
// a matrix kernel alone does not show is in it: attention, norms, the start of
// every operation, sampling. Bandwidth and rate are those that explain the time
// of passes of one and of sixteen rows. Without name; memory is what was
// available before. UsageError where passes read other bytes for more rows
// (experts); kCancelled within a second of an interrupt.
absl::StatusOr<NodeEntry> ProbeModel(const ModelProbeOptions& options,
                                     Console& console);

// A pass of r rows takes fixed_s + r * row_s.
struct PassLine {
  double fixed_s = 0;
  double row_s = 0;
};
// Through the times of two passes, `few` < `many` rows. No row costs less than
// nothing and none more than a pass of it: noise is shared out so.
PassLine LineThrough(double few, double few_s, double many, double many_s);

}  // namespace millrace::cli
