#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/quant/tile.h"

// For ExpandedWalk. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

// The sums of a token and of a tile's rows, of which the first `num` are rows
// of the matrix. `sums`: 32-byte aligned. Masked stores take forty steps on
// AMD's, so that the last tile goes row by row.
struct Rows256 {
  static void Clear(float* sums) {
    _mm256_store_ps(sums, _mm256_setzero_ps());
    _mm256_store_ps(sums + 8, _mm256_setzero_ps());
  }
  static void Load(const float* y, int64_t num, float* sums) {
    if (num == kTileRows) {
      _mm256_store_ps(sums, _mm256_loadu_ps(y));
      _mm256_store_ps(sums + 8, _mm256_loadu_ps(y + 8));
      return;
    }
    for (int64_t row = 0; row < kTileRows; ++row) {
      sums[row] = row < num ? y[row] : 0.0f;
    }
  }
  // Adds `bias` where it is not null.
  static void Store(const float* sums, int64_t num, const float* bias,
                    float* y) {
    if (num == kTileRows) {
      StoreHalf(sums, bias, y);
      StoreHalf(sums + 8, bias == nullptr ? bias : bias + 8, y + 8);
      return;
    }
    for (int64_t row = 0; row < num; ++row) {
      y[row] = bias == nullptr ? sums[row] : sums[row] + bias[row];
    }
  }

 private:
  static void StoreHalf(const float* sums, const float* bias, float* y) {
    __m256 all = _mm256_load_ps(sums);
    if (bias != nullptr) {
      all = _mm256_add_ps(all, _mm256_loadu_ps(bias));
    }
    _mm256_storeu_ps(y, all);
  }
};

}  // namespace
}  // namespace millrace::kernels
