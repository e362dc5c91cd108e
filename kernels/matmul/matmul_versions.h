#pragma once

namespace millrace::kernels {

struct KernelTable;

// Each fills the matmul and pack_activations slots that it implements. The
// AVX versions do nothing on other processors' builds.
void AddScalarMatMul(KernelTable& table);
void AddAvx2MatMul(KernelTable& table);
void AddAvx512MatMul(KernelTable& table);

// The paired dot instruction of AVX512_BF16: whether the host has it and it
// gives the bits of two fused steps, and the product that uses it.
bool HostHasPairedDot();
void AddAvx512Bf16MatMul(KernelTable& table);

}  // namespace millrace::kernels
