#include "kernels/ops_versions.h"

#if defined(__AVX2__)
#include "kernels/ops_vector.h"

namespace millrace::kernels {

void AddAvx2Ops(KernelTable& table) { AddVectorOps(table); }

}  // namespace millrace::kernels
#else
namespace millrace::kernels {

void AddAvx2Ops(KernelTable& /*table*/) {}

}  // namespace millrace::kernels
#endif
