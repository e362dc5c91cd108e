#pragma once

namespace millrace::kernels {

struct KernelTable;

// Each fills the matmul and pack_activations slots that it implements. The
// versions of other processors do nothing.
void AddScalarMatMul(KernelTable& table);
void AddAvx2MatMul(KernelTable& table);
void AddAvx512MatMul(KernelTable& table);
void AddNeonMatMul(KernelTable& table);

// Fast products of quantised weights by the byte dot instruction on 256 bits
// (AVX-VNNI), for processors that lack AVX-512; everything else stays AVX2's.
bool HostHasByteDot256();
void AddAvxVnniMatMul(KernelTable& table);

// The paired dot instruction of AVX512_BF16: whether the host has it and it
// gives the bits of two fused steps, and the products that use it.
bool HostHasPairedDot();
void AddAvx512Bf16MatMul(KernelTable& table);

// Fast products of quantised weights for several tokens by the tile registers
// of AMX. HostHasTiles asks the system for their use, which holds for the whole
// process.
bool HostHasTiles();
void AddAmxMatMul(KernelTable& table);

// Fast products of quantised weights by the byte dot instruction, which the
// host must have; the other products are the same without it.
void AddNeonDotMatMul(KernelTable& table);

}  // namespace millrace::kernels
