#pragma once

#include <immintrin.h>

// See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// sum[i] += codes[4 i] x[4 i] + ... + codes[4 i + 3] x[4 i + 3], codes unsigned
// and x signed bytes. The same instruction has two encodings: that of AVX-VNNI,
// and that of AVX-512, in which it is tested on processors without the first.
__attribute__((always_inline)) inline __m256i AddByteDots(__m256i sum,
                                                          __m256i codes,
                                                          __m256i x) {
#if defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(sum, codes, x);
#else
  return _mm256_dpbusd_epi32(sum, codes, x);
#endif
}

}  // namespace
}  // namespace millrace::kernels
