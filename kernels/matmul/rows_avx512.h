#pragma once

#include <immintrin.h>

#include <cstdint>

// For ExpandedWalk. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// The sums of a token and of a tile's rows, of which the first `num` are rows
// of the matrix. `sums`: 64-byte aligned.
struct Rows512 {
  static void Clear(float* sums) { _mm512_store_ps(sums, _mm512_setzero_ps()); }
  static void Load(const float* y, int64_t num, float* sums) {
    _mm512_store_ps(sums, _mm512_maskz_loadu_ps(First(num), y));
  }
  // Adds `bias` where it is not null.
  static void Store(const float* sums, int64_t num, const float* bias,
                    float* y) {
    __m512 all = _mm512_load_ps(sums);
    if (bias != nullptr) {
      all = _mm512_add_ps(all, _mm512_maskz_loadu_ps(First(num), bias));
    }
    _mm512_mask_storeu_ps(y, First(num), all);
  }

 private:
  static __mmask16 First(int64_t num) {
    return static_cast<__mmask16>((1 << num) - 1);
  }
};

}  // namespace
}  // namespace millrace::kernels
