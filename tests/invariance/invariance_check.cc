#include "tests/invariance/invariance_check.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace millrace::testing {
namespace {

// More say nothing new.
constexpr int kFailuresMax = 8;

}  // namespace

kernels::KvType DefaultKv(kernels::ComputeMode mode) {
  return mode == kernels::ComputeMode::kExact ? kernels::KvType::kF32
                                              : kernels::KvType::kF16;
}

bool InvarianceCheck::RunOne(const Configuration& configuration,
                             kernels::KvType kv_type) {
  auto observed = Observe(checkpoint_, configuration, kv_type, workload_);
  if (!observed.ok()) {
    ADD_FAILURE() << Describe(configuration) << ": " << observed.status();
    return false;
  }
  const auto [first, is_first] =
      first_.try_emplace({configuration.mode, kv_type}, *observed);
  if (is_first) {
    EXPECT_TRUE(observed->greedy.status.ok()) << observed->greedy.status;
    EXPECT_TRUE(observed->sampled.status.ok()) << observed->sampled.status;
  }
  const std::string difference = Difference(*observed, first->second);
  if (!difference.empty()) {
    ADD_FAILURE() << Describe(configuration) << ": " << difference;
    ++num_failed_;
  }
  return num_failed_ < kFailuresMax;
}

void InvarianceCheck::Run(const std::vector<Configuration>& configurations,
                          kernels::KvType kv_type) {
  for (const Configuration& configuration : configurations) {
    if (!RunOne(configuration, kv_type)) {
      return;
    }
  }
}

void InvarianceCheck::RunDefaultKv(
    const std::vector<Configuration>& configurations) {
  for (const Configuration& configuration : configurations) {
    if (!RunOne(configuration, DefaultKv(configuration.mode))) {
      return;
    }
  }
}

const Observed* InvarianceCheck::Find(kernels::ComputeMode mode,
                                      kernels::KvType kv_type) const {
  const auto found = first_.find({mode, kv_type});
  return found == first_.end() ? nullptr : &found->second;
}

}  // namespace millrace::testing
