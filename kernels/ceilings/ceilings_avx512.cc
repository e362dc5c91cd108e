// See ceilings_avx2.cc.

#include <immintrin.h>

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"
#include "kernels/ceilings/xor_of_words.h"

namespace millrace::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int kChains = 16;  // 5 cycles times 2 a cycle, and some

void Fma(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n\t"
      "vpxord %%zmm\\r, %%zmm\\r, %%zmm\\r\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
      "vfmadd231ps %%zmm16, %%zmm16, %%zmm\\r\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(turns)
      :
      : "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8",
        "zmm9", "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16",
        "cc");
}

void ByteDot(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n\t"
      "vpxord %%zmm\\r, %%zmm\\r, %%zmm\\r\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
      "vpdpbusd %%zmm16, %%zmm16, %%zmm\\r\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(turns)
      :
      : "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8",
        "zmm9", "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16",
        "cc");
}

// Vectors side by side, `apart` bytes from each other, and `step` bytes from
// one turn to the next.
__attribute__((always_inline)) inline uint64_t ReadVectors(
    const std::byte* data, int64_t bytes, int64_t apart, int64_t step) {
  __m512i sums[kReadPlaces] = {};
  for (int64_t left = bytes; left > 0; left -= sizeof(sums)) {
#pragma GCC unroll 8
    for (int i = 0; i < kReadPlaces; ++i) {
      sums[i] = _mm512_xor_si512(sums[i], _mm512_load_si512(data + i * apart));
    }
    data += step;
  }
  return XorOfWords(sums);
}

uint64_t Read(const std::byte* data, int64_t bytes) {
  return ReadVectors(data, bytes, 64, 64 * kReadPlaces);
}

uint64_t ReadPlaces(const std::byte* data, int64_t bytes) {
  return ReadVectors(data, bytes, bytes / kReadPlaces, 64);
}

}  // namespace

void AddAvx512Ceilings(CeilingLoops& loops) {
  loops.read = Read;
  loops.read_places = ReadPlaces;
  loops.peaks[static_cast<int>(Peak::kFma)] = {Fma, 2 * kChains * kLanes};
  loops.peaks[static_cast<int>(Peak::kByteDot)] = {ByteDot,
                                                   2 * kChains * 4 * kLanes};
}

}  // namespace millrace::kernels
