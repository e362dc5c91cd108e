#include "cli/kernel_choices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "cli/bench/bench_options.h"
#include "kernels/kernel_versions.h"

namespace millrace::cli {

const char* ProductVersion(const kernels::KernelTable& table,
                           kernels::WeightFormat format,
                           kernels::ComputeMode compute) {
  for (const kernels::KernelChoice& choice : kernels::DescribeKernels(table)) {
    if (absl::string_view(choice.kernel) == "matmul" &&
        absl::string_view(choice.format) == kernels::TraitsOf(format).name &&
        absl::string_view(choice.compute) == ComputeName(compute)) {
      return choice.version;
    }
  }
  return "";
}

std::vector<control::KernelUse> KernelUses(const kernels::KernelTable& table) {
  std::vector<control::KernelUse> uses;
  for (const kernels::KernelChoice& choice : kernels::DescribeKernels(table)) {
    control::KernelUse use = {choice.kernel, choice.compute, choice.version};
    if (std::find(uses.begin(), uses.end(), use) == uses.end()) {
      uses.push_back(std::move(use));
    }
  }
  return uses;
}

std::vector<std::string> LackingVersions() {
  std::vector<std::string> names;
  for (const kernels::KernelVersion& version : kernels::KernelVersions()) {
    if (!version.host_supports()) {
      names.emplace_back(version.name);
    }
  }
  return names;
}

}  // namespace millrace::cli
