// Prints which version each slot of the best table of this processor runs.

#include <cstdio>

#include "kernels/kernel_versions.h"

int main() {
  using namespace millrace::kernels;
  for (const KernelChoice& choice :
       DescribeKernels(BuildKernelTable(BestIsa()))) {
    std::printf("%s %s %s: %s\n", choice.kernel, choice.format, choice.compute,
                choice.version);
  }
}
