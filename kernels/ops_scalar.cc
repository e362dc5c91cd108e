#include "kernels/kernel_table.h"
#include "kernels/ops_versions.h"

namespace millrace::kernels {

void AddScalarOps(KernelTable& table) { (void)table; }
void AddAvx2Ops(KernelTable& table) { (void)table; }
void AddAvx512Ops(KernelTable& table) { (void)table; }

}  // namespace millrace::kernels
