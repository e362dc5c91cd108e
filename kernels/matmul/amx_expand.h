#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx512_format.h"
#include "kernels/matmul/expanded_group.h"
#include "kernels/quant/tile_layout.h"

// Quantised groups as the tile registers of AMX take them, see tile_walk.h for
// the unnamed namespace.
namespace millrace::kernels {
namespace {

// Whether the values of a format are bytes from 0 to 255, else from -128 to
// 127.
constexpr bool HasUnsignedValues(const TileLayout& layout) {
  return layout.code_bits == 8 && layout.value == CodeValue::kFromZero;
}

inline void StoreVector(std::byte* out, int index, __m512 value) {
  _mm512_store_ps(out + kExpandedCodeBytes + index * kVectorBytes, value);
}

// Writes the groups [begin, end) of a tile to `out`, 64-byte aligned; begin is
// the first of a record.
template <WeightFormat kFormat>
void ExpandGroups(const std::byte* tile, int64_t cols, int64_t begin,
                  int64_t end, std::byte* out) {
  constexpr ProductRule kRule = LayoutOf(kFormat).rule;
  static_assert(kRule != ProductRule::kTwoHalvesAndMinima);
  const __m512i zero =
      _mm512_set1_epi8(static_cast<char>(DotCodes<kFormat>::kZero));
  ForGroups<kFormat, false>(
      tile, cols, begin, end,
      [&](const Codes512& codes, const Scales512& scales, int64_t)
          __attribute__((always_inline)) {
#pragma GCC unroll 8
            for (int i = 0; i < kNumQuads; ++i) {
              _mm512_store_si512(out + 64 * i,
                                 _mm512_sub_epi8(codes.quad[i], zero));
            }
            StoreVector(out, 0, scales.w0);
            if constexpr (kRule == ProductRule::kTwoHalves) {
              StoreVector(out, 1, scales.w1);
            } else if constexpr (kRule != ProductRule::kOneScale) {
              StoreVector(out, 1, scales.wm0);
            }
            out += ExpandedGroupBytes(kRule);
          });
}

}  // namespace
}  // namespace millrace::kernels
