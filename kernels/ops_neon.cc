#include "kernels/ops_versions.h"

#if defined(__aarch64__)
#include "kernels/ops_vector.h"

namespace millrace::kernels {

void AddNeonOps(KernelTable& table) { AddVectorOps(table); }

}  // namespace millrace::kernels
#else
namespace millrace::kernels {

void AddNeonOps(KernelTable& /*table*/) {}

}  // namespace millrace::kernels
#endif
