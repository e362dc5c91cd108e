#pragma once

#include <map>
#include <vector>

#include "kernels/compute_mode.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/invariance/matrix.h"
#include "tests/invariance/workload.h"

namespace millrace::testing {

// Runs a workload in many configurations and compares all that it gives, with
// ==, with what the first configuration of the mode gave.
class InvarianceCheck {
 public:
  // Both outlive the check.
  InvarianceCheck(const model::Checkpoint& checkpoint, const Workload& workload)
      : checkpoint_(checkpoint), workload_(workload) {}

  // Adds a failure for each configuration that differs; gives up after a few.
  void Run(const std::vector<Configuration>& configurations,
           kernels::KvType kv_type);
  // The same with the type of keys and values that goes with the mode.
  void RunDefaultKv(const std::vector<Configuration>& configurations);

  // What all configurations of this mode and type gave; null before any.
  [[nodiscard]] const Observed* Find(kernels::ComputeMode mode,
                                     kernels::KvType kv_type) const;

 private:
  // False when enough failed.
  bool RunOne(const Configuration& configuration, kernels::KvType kv_type);

  const model::Checkpoint& checkpoint_;
  const Workload& workload_;
  std::map<std::pair<kernels::ComputeMode, kernels::KvType>, Observed> first_;
  int num_failed_ = 0;
};

// Keys and values of --compute without --kv.
kernels::KvType DefaultKv(kernels::ComputeMode mode);

}  // namespace millrace::testing
