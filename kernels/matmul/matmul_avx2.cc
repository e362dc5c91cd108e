#include "kernels/kernel_table.h"
#include "kernels/matmul/matmul_versions.h"

namespace millrace::kernels {

void AddAvx2MatMul(KernelTable& table) { (void)table; }

}  // namespace millrace::kernels
