#include "kernels/matmul/matmul_neon.h"

#include "kernels/kernel_table.h"
#include "kernels/matmul/matmul_versions.h"

namespace millrace::kernels {

#if defined(__aarch64__)

namespace {

void AddFormat(KernelTable& table, WeightFormat format,
               const MatMulPair& versions) {
  const int index = static_cast<int>(format);
  table.matmul[static_cast<int>(ComputeMode::kFast)][index] = versions.fast;
  table.matmul[static_cast<int>(ComputeMode::kExact)][index] = versions.exact;
}

}  // namespace

void AddNeonMatMul(KernelTable& table) {
  AddFormat(table, WeightFormat::kF32, kMatMulNeonF32);
  AddFormat(table, WeightFormat::kF16, kMatMulNeonF16);
  AddFormat(table, WeightFormat::kBf16, kMatMulNeonBf16);
  AddFormat(table, WeightFormat::kQ4_0, kMatMulNeonQ40);
  AddFormat(table, WeightFormat::kQ4_1, kMatMulNeonQ41);
  AddFormat(table, WeightFormat::kQ5_0, kMatMulNeonQ50);
  AddFormat(table, WeightFormat::kQ5_1, kMatMulNeonQ51);
  AddFormat(table, WeightFormat::kQ8_0, kMatMulNeonQ80);
  AddFormat(table, WeightFormat::kQ4_K, kMatMulNeonQ4K);
  AddFormat(table, WeightFormat::kQ5_K, kMatMulNeonQ5K);
  AddFormat(table, WeightFormat::kQ6_K, kMatMulNeonQ6K);
  AddFormat(table, WeightFormat::kQ2_K, kMatMulNeonQ2K);
  AddFormat(table, WeightFormat::kQ3_K, kMatMulNeonQ3K);
  AddFormat(table, WeightFormat::kIq4Nl, kMatMulNeonIq4Nl);
  AddFormat(table, WeightFormat::kMxfp4, kMatMulNeonMxfp4);
  AddFormat(table, WeightFormat::kInt4, kMatMulNeonInt4);
  AddFormat(table, WeightFormat::kInt4F16, kMatMulNeonInt4F16);
  AddFormat(table, WeightFormat::kInt4Zero, kMatMulNeonInt4Zero);
  AddFormat(table, WeightFormat::kInt4ZeroF16, kMatMulNeonInt4ZeroF16);
  AddFormat(table, WeightFormat::kMlx4, kMatMulNeonMlx4);
  AddFormat(table, WeightFormat::kMlx4F16, kMatMulNeonMlx4F16);
  AddFormat(table, WeightFormat::kMlx8, kMatMulNeonMlx8);
  AddFormat(table, WeightFormat::kMlx8F16, kMatMulNeonMlx8F16);
  table.pack_activations[static_cast<int>(ActivationForm::kInt8)] =
      PackInt8Neon;
}

void AddNeonDotMatMul(KernelTable& table) {
  MatMulFn* fast = table.matmul[static_cast<int>(ComputeMode::kFast)];
  fast[static_cast<int>(WeightFormat::kQ4_0)] = kMatMulNeonDotQ40;
  fast[static_cast<int>(WeightFormat::kQ4_1)] = kMatMulNeonDotQ41;
  fast[static_cast<int>(WeightFormat::kQ5_0)] = kMatMulNeonDotQ50;
  fast[static_cast<int>(WeightFormat::kQ5_1)] = kMatMulNeonDotQ51;
  fast[static_cast<int>(WeightFormat::kQ8_0)] = kMatMulNeonDotQ80;
  fast[static_cast<int>(WeightFormat::kQ4_K)] = kMatMulNeonDotQ4K;
  fast[static_cast<int>(WeightFormat::kQ5_K)] = kMatMulNeonDotQ5K;
  fast[static_cast<int>(WeightFormat::kQ6_K)] = kMatMulNeonDotQ6K;
  fast[static_cast<int>(WeightFormat::kQ2_K)] = kMatMulNeonDotQ2K;
  fast[static_cast<int>(WeightFormat::kQ3_K)] = kMatMulNeonDotQ3K;
  fast[static_cast<int>(WeightFormat::kIq4Nl)] = kMatMulNeonDotIq4Nl;
  fast[static_cast<int>(WeightFormat::kMxfp4)] = kMatMulNeonDotMxfp4;
  fast[static_cast<int>(WeightFormat::kInt4)] = kMatMulNeonDotInt4;
  fast[static_cast<int>(WeightFormat::kInt4F16)] = kMatMulNeonDotInt4F16;
  fast[static_cast<int>(WeightFormat::kInt4Zero)] = kMatMulNeonDotInt4Zero;
  fast[static_cast<int>(WeightFormat::kInt4ZeroF16)] =
      kMatMulNeonDotInt4ZeroF16;
  fast[static_cast<int>(WeightFormat::kMlx4)] = kMatMulNeonDotMlx4;
  fast[static_cast<int>(WeightFormat::kMlx4F16)] = kMatMulNeonDotMlx4F16;
  fast[static_cast<int>(WeightFormat::kMlx8)] = kMatMulNeonDotMlx8;
  fast[static_cast<int>(WeightFormat::kMlx8F16)] = kMatMulNeonDotMlx8F16;
}

#else

void AddNeonMatMul(KernelTable&) {}
void AddNeonDotMatMul(KernelTable&) {}

#endif

}  // namespace millrace::kernels
