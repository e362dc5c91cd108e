// See ceilings_avx2.cc.

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"

namespace millrace::kernels {
namespace {

constexpr int kLanes = 8;
constexpr int kChains = 12;  // 5 cycles times 2 a cycle, and some

// {vex}: the assembler would otherwise take the encoding of AVX-512.
void ByteDot(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,15\n\t"
      "vpxor %%ymm\\r, %%ymm\\r, %%ymm\\r\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "%{vex%} vpdpbusd %%ymm15, %%ymm15, %%ymm\\r\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(turns)
      :
      : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8",
        "ymm9", "ymm10", "ymm11", "ymm15", "cc");
}

}  // namespace

void AddAvxVnniCeilings(CeilingLoops& loops) {
  loops.peaks[static_cast<int>(Peak::kByteDot)] = {ByteDot,
                                                   2 * kChains * 4 * kLanes};
}

}  // namespace millrace::kernels
