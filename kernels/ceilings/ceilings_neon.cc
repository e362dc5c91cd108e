// See ceilings_avx2.cc.

#include <arm_neon.h>

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"
#include "kernels/ceilings/xor_of_words.h"

namespace millrace::kernels {
namespace {

constexpr int kLanes = 4;
constexpr int kChains = 16;  // 4 cycles times 4 a cycle

void Fma(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,24\n\t"
      "movi v\\r\\().16b, #0\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23\n\t"
      "fmla v\\r\\().4s, v24.4s, v24.4s\n\t"
      ".endr\n\t"
      "subs %0, %0, #1\n\t"
      "b.ne 1b"
      : "+r"(turns)
      :
      : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
        "v19", "v20", "v21", "v22", "v23", "v24", "cc");
}

// Products of bytes added up in 16 bits: what is left where there is no byte
// dot instruction.
void ByteDot(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,24\n\t"
      "movi v\\r\\().16b, #0\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23\n\t"
      "smlal v\\r\\().8h, v24.8b, v24.8b\n\t"
      ".endr\n\t"
      "subs %0, %0, #1\n\t"
      "b.ne 1b"
      : "+r"(turns)
      :
      : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
        "v19", "v20", "v21", "v22", "v23", "v24", "cc");
}

uint64_t Read(const std::byte* data, int64_t bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64x2_t sums[8] = {};
  for (int64_t at = 0; at < bytes / 8; at += 16) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      sums[i] = veorq_u64(sums[i], vld1q_u64(words + at + 2 * i));
    }
  }
  return XorOfWords(sums);
}

}  // namespace

void AddNeonCeilings(CeilingLoops& loops) {
  loops.read = Read;
  loops.peaks[static_cast<int>(Peak::kFma)] = {Fma, 2 * kChains * kLanes};
  loops.peaks[static_cast<int>(Peak::kByteDot)] = {ByteDot, 2 * kChains * 8};
}

}  // namespace millrace::kernels
