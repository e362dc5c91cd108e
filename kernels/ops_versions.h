#pragma once

namespace millrace::kernels {

struct KernelTable;

// Each fills the slots of every kernel but the matrix products that it
// implements. The versions of other processors do nothing.
void AddScalarOps(KernelTable& table);
void AddAvx2Ops(KernelTable& table);
void AddAvx512Ops(KernelTable& table);
void AddNeonOps(KernelTable& table);

}  // namespace millrace::kernels
