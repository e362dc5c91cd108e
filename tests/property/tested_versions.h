#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace millrace::kernels {

// A version of the kernels that a property test holds against the scalar one.
struct TestedVersion {
  std::string name;
  // Why this program does not run it on this host; empty where it does.
  std::string not_run;
  // The scalar table with this version alone laid over it; scalar where not
  // run.
  KernelTable table;
};

// For gtest, which names the parameter of a failed test.
inline void PrintTo(const TestedVersion& version, std::ostream* out) {
  *out << version.name;
}

// Versions of KernelVersions(), never the scalar one. A test program links one
// of three definitions: native_versions.cc runs all that the processor has,
// emulated_versions.cc the AVX-512 sources where it has not, and
// avxvnni_twin_versions.cc those of AVX-VNNI in the encoding of AVX-512.
std::vector<TestedVersion> TestedVersions();

}  // namespace millrace::kernels
