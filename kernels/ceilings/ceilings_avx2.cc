// The peak loops are assembly with registers of their own: a compiler that kept
// one sum in memory would lower what kernels are judged by. They clear the
// upper halves themselves, which the compiler does not know to be in use.

#include <immintrin.h>

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"

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

uint64_t Fold(const __m256i (&sums)[8]) {
  __m256i sum = sums[0];
#pragma GCC unroll 7
  for (int i = 1; i < 8; ++i) {
    sum = _mm256_xor_si256(sum, sums[i]);
  }
  const __m128i half = _mm_xor_si128(_mm256_castsi256_si128(sum),
                                     _mm256_extracti128_si256(sum, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(half)) ^
         static_cast<uint64_t>(_mm_extract_epi64(half, 1));
}

uint64_t Read(const std::byte* data, int64_t bytes) {
  __m256i sums[8] = {};
  for (int64_t at = 0; at < bytes; at += 256) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const auto* from = reinterpret_cast<const __m256i*>(data + at) + i;
      sums[i] = _mm256_xor_si256(sums[i], _mm256_load_si256(from));
    }
  }
  return Fold(sums);
}

uint64_t ReadPlaces(const std::byte* data, int64_t bytes) {
  __m256i sums[kReadPlaces] = {};
  const int64_t share = bytes / kReadPlaces;
  for (int64_t at = 0; at < share; at += 32) {
#pragma GCC unroll 8
    for (int i = 0; i < kReadPlaces; ++i) {
      sums[i] = _mm256_xor_si256(
          sums[i], _mm256_load_si256(reinterpret_cast<const __m256i*>(
                       data + i * share + at)));
    }
  }
  return Fold(sums);
}

}  // namespace

void AddAvx2Ceilings(CeilingLoops& loops) {
  loops.read = Read;
  loops.read_places = ReadPlaces;
  loops.peaks[static_cast<int>(Peak::kFma)] = {Fma, 2 * kChains * kLanes};
  loops.peaks[static_cast<int>(Peak::kByteDot)] = {ByteDot, 2 * 6 * 4 * kLanes};
}

}  // namespace millrace::kernels
