// See ceilings_avx2.cc.

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"

namespace millrace::kernels {
namespace {

constexpr int kChains = 16;  // 4 cycles times 4 a cycle

void ByteDot(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,24\n\t"
      "movi v\\r\\().16b, #0\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23\n\t"
      "sdot v\\r\\().4s, v24.16b, v24.16b\n\t"
      ".endr\n\t"
      "subs %0, %0, #1\n\t"
      "b.ne 1b"
      : "+r"(turns)
      :
      : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
        "v19", "v20", "v21", "v22", "v23", "v24", "cc");
}

}  // namespace

void AddNeonDotCeilings(CeilingLoops& loops) {
  loops.peaks[static_cast<int>(Peak::kByteDot)] = {ByteDot, 2 * kChains * 16};
}

}  // namespace millrace::kernels
