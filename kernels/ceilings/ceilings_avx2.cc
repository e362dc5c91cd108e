// The peak loops are assembly with registers of their own: a compiler that kept
// one sum in memory would lower what kernels are judged by. They clear the
// upper halves themselves, which the compiler does not know to be in use.

#include <immintrin.h>

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"
#include "kernels/ceilings/xor_of_words.h"

namespace millrace::kernels {
namespace {

constexpr int kLanes = 8;
constexpr int kChains = 12;  // 5 cycles times 2 a cycle, and some

// Zeros times zeros: no subnormals, no overflow, as fast as any numbers.
void Fma(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,15\n\t"
      "vpxor %%ymm\\r, %%ymm\\r, %%ymm\\r\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "vfmadd231ps %%ymm15, %%ymm15, %%ymm\\r\n\t"
      ".endr\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(turns)
      :
      : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8",
        "ymm9", "ymm10", "ymm11", "ymm15", "cc");
}

// Products of bytes in pairs, added up in 16 bits: what is left where there is
// no byte dot instruction. Six products, six sums.
void ByteDot(int64_t turns) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,15\n\t"
      "vpxor %%ymm\\r, %%ymm\\r, %%ymm\\r\n\t"
      ".endr\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5\n\t"
      "vpmaddubsw %%ymm15, %%ymm15, %%ymm\\r\n\t"
      ".endr\n\t"
      "vpaddw %%ymm0, %%ymm6, %%ymm6\n\t"
      "vpaddw %%ymm1, %%ymm7, %%ymm7\n\t"
      "vpaddw %%ymm2, %%ymm8, %%ymm8\n\t"
      "vpaddw %%ymm3, %%ymm9, %%ymm9\n\t"
      "vpaddw %%ymm4, %%ymm10, %%ymm10\n\t"
      "vpaddw %%ymm5, %%ymm11, %%ymm11\n\t"
      "dec %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(turns)
      :
      : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8",
        "ymm9", "ymm10", "ymm11", "ymm15", "cc");
}

// Vectors side by side, `apart` bytes from each other, and `step` bytes from
// one turn to the next.
__attribute__((always_inline)) inline uint64_t ReadVectors(
    const std::byte* data, int64_t bytes, int64_t apart, int64_t step) {
  __m256i sums[kReadPlaces] = {};
  for (int64_t left = bytes; left > 0; left -= sizeof(sums)) {
#pragma GCC unroll 8
    for (int i = 0; i < kReadPlaces; ++i) {
      sums[i] = _mm256_xor_si256(
          sums[i], _mm256_load_si256(
                       reinterpret_cast<const __m256i*>(data + i * apart)));
    }
    data += step;
  }
  return XorOfWords(sums);
}

uint64_t Read(const std::byte* data, int64_t bytes) {
  return ReadVectors(data, bytes, 32, 32 * kReadPlaces);
}

uint64_t ReadPlaces(const std::byte* data, int64_t bytes) {
  return ReadVectors(data, bytes, bytes / kReadPlaces, 32);
}

}  // namespace

void AddAvx2Ceilings(CeilingLoops& loops) {
  loops.read = Read;
  loops.read_places = ReadPlaces;
  loops.peaks[static_cast<int>(Peak::kFma)] = {Fma, 2 * kChains * kLanes};
  loops.peaks[static_cast<int>(Peak::kByteDot)] = {ByteDot, 2 * 6 * 4 * kLanes};
}

}  // namespace millrace::kernels
