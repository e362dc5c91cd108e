#include "kernels/matmul/matmul_avx512.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

void AddAvx512MatMul(KernelTable& table) {
  AddFormat(table, WeightFormat::kF32, kMatMulAvx512F32);
  AddFormat(table, WeightFormat::kF16, kMatMulAvx512F16);
  AddFormat(table, WeightFormat::kBf16, kMatMulAvx512Bf16);
  AddFormat(table, WeightFormat::kQ4_0, kMatMulAvx512Q40);
  AddFormat(table, WeightFormat::kQ4_1, kMatMulAvx512Q41);
  AddFormat(table, WeightFormat::kQ5_0, kMatMulAvx512Q50);
  AddFormat(table, WeightFormat::kQ5_1, kMatMulAvx512Q51);
  AddFormat(table, WeightFormat::kQ8_0, kMatMulAvx512Q80);
  AddFormat(table, WeightFormat::kQ4_K, kMatMulAvx512Q4K);
  AddFormat(table, WeightFormat::kQ5_K, kMatMulAvx512Q5K);
  AddFormat(table, WeightFormat::kQ6_K, kMatMulAvx512Q6K);
  AddFormat(table, WeightFormat::kQ2_K, kMatMulAvx512Q2K);
  AddFormat(table, WeightFormat::kQ3_K, kMatMulAvx512Q3K);
  AddFormat(table, WeightFormat::kIq4Nl, kMatMulAvx512Iq4Nl);
  AddFormat(table, WeightFormat::kMxfp4, kMatMulAvx512Mxfp4);
  AddFormat(table, WeightFormat::kInt4, kMatMulAvx512Int4);
  AddFormat(table, WeightFormat::kInt4F16, kMatMulAvx512Int4F16);
  AddFormat(table, WeightFormat::kInt4Zero, kMatMulAvx512Int4Zero);
  AddFormat(table, WeightFormat::kInt4ZeroF16, kMatMulAvx512Int4ZeroF16);
  AddFormat(table, WeightFormat::kMlx4, kMatMulAvx512Mlx4);
  AddFormat(table, WeightFormat::kMlx4F16, kMatMulAvx512Mlx4F16);
  AddFormat(table, WeightFormat::kMlx8, kMatMulAvx512Mlx8);
  AddFormat(table, WeightFormat::kMlx8F16, kMatMulAvx512Mlx8F16);
  AddFormat(table, WeightFormat::kFp8, kMatMulAvx512Fp8);
  PackActivationsFn* pack = table.pack_activations;
  pack[static_cast<int>(ActivationForm::kF32)] = PackF32Avx512;
  pack[static_cast<int>(ActivationForm::kBf16)] = PackBf16Avx512;
  pack[static_cast<int>(ActivationForm::kInt8)] = PackInt8Avx512;
}

bool HostHasPairedDot() {
  return __builtin_cpu_supports("avx512bf16") != 0 &&
         PairedDotIsTwoFusedSteps();
}

bool HostHasTiles() {
  constexpr unsigned kTileAndInt8 = 3u << 24;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 ||
      (d & kTileAndInt8) != kTileAndInt8) {
    return false;
  }
  // Linux keeps 8 KiB of tile registers only for processes that ask.
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

void AddAvx512Bf16MatMul(KernelTable& table) {
  MatMulFn* fast = table.matmul[static_cast<int>(ComputeMode::kFast)];
  // Intel's instruction (Sapphire Rapids) takes twice as long as the two fused
  // steps that it stands for.
  fast[static_cast<int>(WeightFormat::kBf16)] = __builtin_cpu_is("intel") != 0
                                                    ? MatMulAvx512FewBf16Pairs
                                                    : MatMulAvx512Bf16Pairs;
  fast[static_cast<int>(WeightFormat::kFp8)] = MatMulAvx512Fp8Pairs;
}

#else

void AddAvx512MatMul(KernelTable&) {}
bool HostHasPairedDot() { return false; }
bool HostHasTiles() { return false; }
void AddAmxMatMul(KernelTable&) {}
void AddAvx512Bf16MatMul(KernelTable&) {}

#endif

}  // namespace millrace::kernels
