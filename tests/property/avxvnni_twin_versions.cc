// The version of AVX-VNNI in the encoding of AVX-512 (tests/support), for
// processors that have the byte dot instruction in that one alone. A program
// that links the twin's objects takes none of the version's own out of the
// kernels' archive.

#include <string_view>

#include "kernels/kernel_versions.h"
#include "tests/property/tested_versions.h"

namespace millrace::kernels {
namespace {

bool HostRunsTwin() {
  return HostSupports(Isa::kAvx2) && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512vnni") != 0;
}

}  // namespace

std::vector<TestedVersion> TestedVersions() {
  std::vector<TestedVersion> tested;
  for (const KernelVersion& version : KernelVersions()) {
    if (std::string_view(version.name) != "avxvnni") {
      continue;
    }
    TestedVersion& added = tested.emplace_back();
    added.name = "avxvnni_twin";
    added.table = BuildKernelTable(Isa::kScalar);
    if (HostRunsTwin()) {
      version.add(added.table);
    } else {
      added.not_run = "this processor has no byte dot of AVX-512";
    }
  }
  return tested;
}

}  // namespace millrace::kernels
