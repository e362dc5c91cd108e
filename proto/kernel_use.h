#pragma once

#include <cstddef>
#include <string>

namespace millrace::control {

// A kernel that a worker runs and the version that it chose, as
// kernels/kernel_versions.h names them; 1 to 64 of [A-Za-z0-9._-], `compute`
// empty where the kernel is the same in both modes. Several entries of one
// kernel: its versions differ by format.
struct KernelUse {
  std::string kernel;
  std::string compute;
  std::string version;
  bool operator==(const KernelUse&) const = default;
};

// A program has about twenty.
inline constexpr size_t kKernelUsesMax = 256;

}  // namespace millrace::control
