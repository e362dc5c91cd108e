#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/matmul/tile_walk.h"

// Products in single precision for several tokens with AVX2. Sixteen rows and
// six tokens keep both fused units busy, but leave no register in which a
// weight could be decoded: the columns of a tile are first written out as
// floats, a block that stays in the first-level cache, once for all tokens of a
// panel.
namespace millrace::kernels {
namespace {

constexpr int64_t kWideColumns = 128;
constexpr int64_t kSliceTokens = 6;

// sums[t][row] = fma(w[c][row], x[c][t], sums[t][row]), columns ascending.
// `stride`: floats between columns of x.
template <int kTokens>
void AddColumns(const float* w, const float* x, int64_t stride, int64_t columns,
                float* sums) {
  __m256 low[kTokens];
  __m256 high[kTokens];
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    low[t] = _mm256_load_ps(sums + t * kTileRows);
    high[t] = _mm256_load_ps(sums + t * kTileRows + 8);
  }
  for (int64_t column = 0; column < columns; ++column) {
    const __m256 w_low = _mm256_loadu_ps(w);
    const __m256 w_high = _mm256_loadu_ps(w + 8);
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
      const __m256 value = _mm256_broadcast_ss(x + t);
      low[t] = _mm256_fmadd_ps(w_low, value, low[t]);
      high[t] = _mm256_fmadd_ps(w_high, value, high[t]);
    }
    w += kTileRows;
    x += stride;
  }
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    _mm256_store_ps(sums + t * kTileRows, low[t]);
    _mm256_store_ps(sums + t * kTileRows + 8, high[t]);
  }
}

// The same for all tokens of a panel, in slices of nearly equal size.
inline void AddColumnsOfPanel(const float* w, const float* x, int64_t tokens,
                              int64_t columns, float* sums) {
  const int64_t slices = (tokens + kSliceTokens - 1) / kSliceTokens;
  for (int64_t slice = 0; slice < slices; ++slice) {
    const int64_t begin = slice * tokens / slices;
    const float* from = x + begin;
    float* to = sums + begin * kTileRows;
    switch ((slice + 1) * tokens / slices - begin) {
      case 1:
        AddColumns<1>(w, from, tokens, columns, to);
        break;
      case 2:
        AddColumns<2>(w, from, tokens, columns, to);
        break;
      case 3:
        AddColumns<3>(w, from, tokens, columns, to);
        break;
      case 4:
        AddColumns<4>(w, from, tokens, columns, to);
        break;
      case 5:
        AddColumns<5>(w, from, tokens, columns, to);
        break;
      default:
        AddColumns<6>(w, from, tokens, columns, to);
        break;
    }
  }
}

inline void ZeroSums(const PanelArgs& args) {
  for (int64_t i = 0; i < args.tokens * kTileRows; i += 8) {
    _mm256_store_ps(args.sums + i, _mm256_setzero_ps());
  }
}

}  // namespace
}  // namespace millrace::kernels
