#include "kernels/matmul/matmul_avx2.h"

#include "kernels/kernel_table.h"
#include "kernels/matmul/matmul_versions.h"

namespace millrace::kernels {

#if defined(__x86_64__)

namespace {

void AddFormat(KernelTable& table, WeightFormat format,
               const MatMulPair& versions) {
  const int index = static_cast<int>(format);
  table.matmul[static_cast<int>(ComputeMode::kFast)][index] = versions.fast;
  table.matmul[static_cast<int>(ComputeMode::kExact)][index] = versions.exact;
}

}  // namespace

void AddAvx2MatMul(KernelTable& table) {
  AddFormat(table, WeightFormat::kF32, kMatMulAvx2F32);
  AddFormat(table, WeightFormat::kF16, kMatMulAvx2F16);
  AddFormat(table, WeightFormat::kBf16, kMatMulAvx2Bf16);
  AddFormat(table, WeightFormat::kQ4_0, kMatMulAvx2Q40);
  AddFormat(table, WeightFormat::kQ4_1, kMatMulAvx2Q41);
  AddFormat(table, WeightFormat::kQ5_0, kMatMulAvx2Q50);
  AddFormat(table, WeightFormat::kQ5_1, kMatMulAvx2Q51);
  AddFormat(table, WeightFormat::kQ8_0, kMatMulAvx2Q80);
  AddFormat(table, WeightFormat::kQ4_K, kMatMulAvx2Q4K);
  AddFormat(table, WeightFormat::kQ5_K, kMatMulAvx2Q5K);
  AddFormat(table, WeightFormat::kQ6_K, kMatMulAvx2Q6K);
  AddFormat(table, WeightFormat::kQ2_K, kMatMulAvx2Q2K);
  AddFormat(table, WeightFormat::kQ3_K, kMatMulAvx2Q3K);
  AddFormat(table, WeightFormat::kIq4Nl, kMatMulAvx2Iq4Nl);
  AddFormat(table, WeightFormat::kMxfp4, kMatMulAvx2Mxfp4);
  AddFormat(table, WeightFormat::kInt4, kMatMulAvx2Int4);
  AddFormat(table, WeightFormat::kInt4F16, kMatMulAvx2Int4F16);
  AddFormat(table, WeightFormat::kInt4Zero, kMatMulAvx2Int4Zero);
  AddFormat(table, WeightFormat::kInt4ZeroF16, kMatMulAvx2Int4ZeroF16);
  AddFormat(table, WeightFormat::kMlx4, kMatMulAvx2Mlx4);
  AddFormat(table, WeightFormat::kMlx4F16, kMatMulAvx2Mlx4F16);
  AddFormat(table, WeightFormat::kMlx8, kMatMulAvx2Mlx8);
  AddFormat(table, WeightFormat::kMlx8F16, kMatMulAvx2Mlx8F16);
  AddFormat(table, WeightFormat::kFp8, kMatMulAvx2Fp8);
  PackActivationsFn* pack = table.pack_activations;
  pack[static_cast<int>(ActivationForm::kF32)] = PackF32Avx2;
  pack[static_cast<int>(ActivationForm::kBf16)] = PackBf16Avx2;
  pack[static_cast<int>(ActivationForm::kInt8)] = PackInt8Avx2;
}

#else

void AddAvx2MatMul(KernelTable&) {}

#endif

}  // namespace millrace::kernels
