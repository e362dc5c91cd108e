#include "kernels/kernel_table.h"
#include "kernels/matmul/matmul_versions.h"

namespace millrace::kernels {

void AddScalarMatMul(KernelTable& table) { (void)table; }
void AddAvx2MatMul(KernelTable& table) { (void)table; }
void AddAvx512MatMul(KernelTable& table) { (void)table; }

}  // namespace millrace::kernels
