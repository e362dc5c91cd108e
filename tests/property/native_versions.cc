#include "kernels/kernel_versions.h"
#include "tests/property/tested_versions.h"

namespace millrace::kernels {

std::vector<TestedVersion> TestedVersions() {
  std::vector<TestedVersion> tested;
  for (const KernelVersion& version : KernelVersions()) {
    if (version.isa == Isa::kScalar) {
      continue;
    }
    TestedVersion& added = tested.emplace_back();
    added.name = version.name;
    added.table = BuildKernelTable(Isa::kScalar);
    if (version.host_supports()) {
      version.add(added.table);
    } else {
      added.not_run = "this processor has no " + added.name;
    }
  }
  return tested;
}

}  // namespace millrace::kernels
