#pragma once

namespace millrace::kernels {

struct KernelTable;

// Each fills the slots of every kernel but the matrix products that it
// implements. The AVX versions do nothing on other processors' builds.
void AddScalarOps(KernelTable& table);
void AddAvx2Ops(KernelTable& table);
void AddAvx512Ops(KernelTable& table);

}  // namespace millrace::kernels
