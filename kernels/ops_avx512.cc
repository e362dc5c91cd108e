#include "kernels/ops_versions.h"

#if defined(__AVX512F__)
#include "kernels/ops_vector.h"

namespace millrace::kernels {

void AddAvx512Ops(KernelTable& table) { AddVectorOps(table); }

}  // namespace millrace::kernels
#else
namespace millrace::kernels {

void AddAvx512Ops(KernelTable& /*table*/) {}

}  // namespace millrace::kernels
#endif
