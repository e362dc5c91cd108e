#pragma once

namespace millrace::kernels {

struct KernelTable;

// Each fills the matmul and pack_activations slots that it implements. The
// AVX versions do nothing on other processors' builds.
void AddScalarMatMul(KernelTable& table);
void AddAvx2MatMul(KernelTable& table);
void AddAvx512MatMul(KernelTable& table);

}  // namespace millrace::kernels
