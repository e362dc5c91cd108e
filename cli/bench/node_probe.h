#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/bench/machine_meter.h"
#include "cli/bench/node_entry.h"
#include "kernels/kernel_table.h"
#include "kernels/quant/weight_format.h"

namespace millrace::cli {

struct NodeProbeOptions {
  kernels::Isa isa = kernels::Isa::kScalar;
  int num_threads = 1;
  bool quick = false;
  std::vector<kernels::WeightFormat> formats;  // those to be measured
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct NodeProbe {
  NodeEntry node;        // without name and NVMe
  MachineRates machine;  // medians
  std::string warning;   // of the bandwidths, MachineMeter::Warning
};

// Measures memory and kernels in rounds, each of which goes through everything,
// so that a moment in which the machine is busy spoils no number. A round is
// left out once ten seconds (`quick`) or a minute have passed; the first one
// always runs. kCancelled within a second of an interrupt.
absl::StatusOr<NodeProbe> ProbeNode(const NodeProbeOptions& options);

// Operations per second that explain, beside reading `bytes` at `bandwidth`,
// why a product of `operations` takes `time`. Where reading explains nearly
// all of it, five times what was done: more was not seen.
double RateBesideReading(double operations, double bytes, double bandwidth,
                         absl::Duration time);

}  // namespace millrace::cli
