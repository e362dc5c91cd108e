#include "cli/bench/kernel_choices.h"

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
