// See ceilings_avx2.cc.

#include <immintrin.h>

#include "kernels/ceilings/ceilings.h"
#include "kernels/ceilings/ceilings_versions.h"

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

uint64_t Fold(const __m512i (&sums)[8]) {
  __m512i sum = sums[0];
#pragma GCC unroll 7
  for (int i = 1; i < 8; ++i) {
    sum = _mm512_xor_si512(sum, sums[i]);
  }
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(sum),
                                        _mm512_extracti64x4_epi64(sum, 1));
  const __m128i quarter = _mm_xor_si128(_mm256_castsi256_si128(half),
                                        _mm256_extracti128_si256(half, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(quarter)) ^
         static_cast<uint64_t>(_mm_extract_epi64(quarter, 1));
}

uint64_t Read(const std::byte* data, int64_t bytes) {
  __m512i sums[8] = {};
  for (int64_t at = 0; at < bytes; at += 512) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      sums[i] =
          _mm512_xor_si512(sums[i], _mm512_load_si512(data + at + 64 * i));
    }
  }
  return Fold(sums);
}

uint64_t ReadPlaces(const std::byte* data, int64_t bytes) {
  __m512i sums[kReadPlaces] = {};
  const int64_t share = bytes / kReadPlaces;
  for (int64_t at = 0; at < share; at += 64) {
#pragma GCC unroll 8
    for (int i = 0; i < kReadPlaces; ++i) {
      sums[i] =
          _mm512_xor_si512(sums[i], _mm512_load_si512(data + i * share + at));
    }
  }
  return Fold(sums);
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
