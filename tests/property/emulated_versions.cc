// The versions whose sources are linked into this program with their intrinsics
// emulated (tests/support/emulated_avx512), so that they run on any processor
// with AVX2. On one that has the instructions, the native programs test them.

#include <iostream>

#include "gtest/gtest.h"
#include "kernels/kernel_versions.h"
#include "tests/property/tested_versions.h"

namespace millrace::kernels {
namespace {

// Says what runs emulated, and skips all tests where nothing does.
class EmulationReport : public testing::Environment {
 public:
  void SetUp() override {
    bool any = false;
    for (const TestedVersion& version : TestedVersions()) {
      std::cout << version.name << ": "
                << (version.not_run.empty() ? "tested" : version.not_run)
                << "\n";
      any = any || version.not_run.empty();
    }
    if (!any) {
      GTEST_SKIP() << "nothing to emulate on this processor";
    }
  }
};

[[maybe_unused]] const testing::Environment* const kReport =
    testing::AddGlobalTestEnvironment(new EmulationReport);

}  // namespace

std::vector<TestedVersion> TestedVersions() {
  std::vector<TestedVersion> tested;
  for (const KernelVersion& version : KernelVersions()) {
    if (version.isa != Isa::kAvx512) {
      continue;
    }
    TestedVersion& added = tested.emplace_back();
    added.name = std::string(version.name) + "_emulated";
    added.table = BuildKernelTable(Isa::kScalar);
    if (version.host_supports()) {
      added.not_run = std::string("this processor has ") + version.name;
    } else if (!HostSupports(Isa::kAvx2)) {
      added.not_run = "this processor has no avx2, which emulation uses";
    } else {
      version.add(added.table);
    }
  }
  return tested;
}

}  // namespace millrace::kernels
