// See ceilings_avx2.cc.

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"

namespace millrace::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int kChains = 24;  // the instruction takes longer than others

void PairedDot(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24"
      "\n\t"
      "vpxord %%zmm\\r, %%zmm\\r, %%zmm\\r\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
      "vdpbf16ps %%zmm24, %%zmm24, %%zmm\\r\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(turns)
      :
      : "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8",
        "zmm9", "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16",
        "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24",
        "cc");
}

}  // namespace

void AddAvx512Bf16Ceilings(CeilingLoops& loops) {
  loops.peaks[static_cast<int>(Peak::kPairedDot)] = {PairedDot,
                                                     2 * kChains * 2 * kLanes};
}

}  // namespace millrace::kernels
