#include "kernels/matmul/matmul_avxvnni.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/kernel_table.h"
#include "kernels/matmul/matmul_versions.h"

namespace millrace::kernels {

#if defined(__x86_64__)

bool HostHasByteDot256() {
  constexpr unsigned kAvxVnni = 1u << 4;
  unsigned last_subleaf = 0;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &last_subleaf, &b, &c, &d) != 0 &&
         last_subleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a & kAvxVnni) != 0;
}

void AddAvxVnniMatMul(KernelTable& table) {
  MatMulFn* fast = table.matmul[static_cast<int>(ComputeMode::kFast)];
  SetAvxVnniBlocks(fast);
  SetAvxVnniSuperBlocks(fast);
  SetAvxVnniTables(fast);
  SetAvxVnniGrouped(fast);
}

#else

bool HostHasByteDot256() { return false; }
void AddAvxVnniMatMul(KernelTable&) {}

#endif

}  // namespace millrace::kernels
