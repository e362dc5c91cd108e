#include "kernels/kernel_table.h"

#include "kernels/matmul/matmul_versions.h"
#include "kernels/ops_versions.h"

namespace millrace::kernels {

bool HostSupports(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
#if defined(__x86_64__)
      return __builtin_cpu_supports("avx2") != 0 &&
             __builtin_cpu_supports("fma") != 0 &&
             __builtin_cpu_supports("f16c") != 0;
#else
      return false;
#endif
    case Isa::kAvx512:
#if defined(__x86_64__)
      return HostSupports(Isa::kAvx2) &&
             __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0 &&
             __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vnni") != 0;
#else
      return false;
#endif
  }
  return false;
}

Isa BestIsa() {
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    if (HostSupports(isa)) {
      return isa;
    }
  }
  return Isa::kScalar;
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

KernelTable BuildKernelTable(Isa isa) {
  KernelTable table;
  table.isa = isa;
  AddScalarMatMul(table);
  AddScalarOps(table);
  if (isa == Isa::kAvx2 || isa == Isa::kAvx512) {
    AddAvx2MatMul(table);
    AddAvx2Ops(table);
  }
  if (isa == Isa::kAvx512) {
    AddAvx512MatMul(table);
    AddAvx512Ops(table);
  }
  return table;
}

}  // namespace millrace::kernels
