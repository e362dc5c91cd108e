#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/prefetch.h"
#include "kernels/quant/tile_layout.h"

// How groups of quantised tiles come into registers; see tile_walk.h for why
// everything is in an unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int kNumQuads = 8;

inline __m512 LoadHalves(const std::byte* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(
      static_cast<const __m256i*>(static_cast<const void*>(from))));
}

// Codes of a group as unsigned bytes, four k of 16 rows in each register.
struct Codes512 {
  __m512i quad[kNumQuads];
};

struct Scales512 {
  __m512 w0;  // of the first half, or of the group
  __m512 w1;  // of the second half
  __m512 wm;
};

// a | (b & mask) in one instruction.
inline __m512i OrMasked(__m512i a, __m512i b, __m512i mask) {
  return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}

template <int kBits>
__attribute__((always_inline)) inline void LoadCodes(const std::byte* from,
                                                     Codes512& codes) {
  if constexpr (kBits == 8) {
    const __m512i flip = _mm512_set1_epi8(-128);
#pragma GCC unroll 8
    for (int i = 0; i < kNumQuads; ++i) {
      codes.quad[i] = _mm512_xor_si512(_mm512_loadu_si512(from + 64 * i), flip);
    }
    return;
  }
  const __m512i nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int i = 0; i < kNumQuads / 2; ++i) {
    const __m512i both = _mm512_loadu_si512(from + 64 * i);
    codes.quad[2 * i] = _mm512_and_si512(both, nibble);
    codes.quad[2 * i + 1] =
        _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
  }
  if constexpr (kBits == 5) {
    const __m512i bit = _mm512_set1_epi8(16);
    const __m512i plane = _mm512_loadu_si512(from + 256);
#pragma GCC unroll 8
    for (int i = 0; i < kNumQuads; ++i) {
      const __m512i moved = i < 4 ? _mm512_slli_epi16(plane, 4 - i)
                                  : _mm512_srli_epi16(plane, i - 4);
      codes.quad[i] = OrMasked(codes.quad[i], moved, bit);
    }
  }
  if constexpr (kBits == 6) {
    const __m512i bits = _mm512_set1_epi8(48);
#pragma GCC unroll 8
    for (int i = 0; i < kNumQuads; ++i) {
      const __m512i plane = _mm512_loadu_si512(from + 256 + 64 * (i / 4));
      const int at = 2 * (i % 4);
      const __m512i moved = at < 4 ? _mm512_slli_epi16(plane, 4 - at)
                                   : _mm512_srli_epi16(plane, at - 4);
      codes.quad[i] = OrMasked(codes.quad[i], moved, bits);
    }
  }
}

// What is read once for a record.
struct Head512 {
  __m512 d;
  __m512 m;
  // Super-blocks of Q4_K and Q5_K: [group][scale, minimum][16 rows].
  alignas(64) uint8_t six_bits[256];
};

inline void UnpackSixBits(const std::byte* from, uint8_t* out) {
  const __m512i low = _mm512_set1_epi8(63);
  const __m512i top = _mm512_set1_epi8(-64);
  const __m512i z0 = _mm512_loadu_si512(from);
  const __m512i z1 = _mm512_loadu_si512(from + 64);
  const __m512i z2 = _mm512_loadu_si512(from + 128);
  _mm512_store_si512(out, _mm512_and_si512(z0, low));
  _mm512_store_si512(out + 64, _mm512_and_si512(z1, low));
  _mm512_store_si512(out + 128, _mm512_and_si512(z2, low));
  const __m512i v0 = _mm512_srli_epi16(_mm512_and_si512(z0, top), 6);
  const __m512i v1 = _mm512_srli_epi16(_mm512_and_si512(z1, top), 4);
  const __m512i v2 = _mm512_srli_epi16(_mm512_and_si512(z2, top), 2);
  _mm512_store_si512(out + 192, _mm512_or_si512(_mm512_or_si512(v0, v1), v2));
}

inline __m512 BytesToFloats(const uint8_t* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_load_si128(
      static_cast<const __m128i*>(static_cast<const void*>(from)))));
}

template <WeightFormat kFormat>
struct Reader512 {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kSuperBlock = kLayout.groups_per_record == 8;
  // Codes in registers are unsigned: value = code - (1 << kZeroShift), or code
  // where kZero is 0.
  static constexpr int kZero = kLayout.code_bits == 8 ? 128 : kLayout.zero;
  static constexpr int kZeroShift = kZero == 8    ? 3
                                    : kZero == 16 ? 4
                                    : kZero == 32 ? 5
                                                  : 7;

  // `front`: the f16 d of this record where they stand before the records.
  static void ReadHead(const std::byte* front, const std::byte* record,
                       Head512& head) {
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      PrefetchLines(record + 64, record + kLayout.scale_bytes);
      head.d = LoadHalves(front);
    } else if constexpr (kSuperBlock) {
      head.d = LoadHalves(record);
      head.m = LoadHalves(record + 32);
      UnpackSixBits(record + 64, head.six_bits);
    }
  }

  static Scales512 ReadScales(const std::byte* record, const Head512& head,
                              int64_t in_record) {
    Scales512 scales;
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      const __m512i both =
          _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(
              static_cast<const void*>(record + 32 * in_record))));
      const __m512i even = _mm512_srai_epi32(_mm512_slli_epi32(both, 16), 16);
      const __m512i odd = _mm512_srai_epi32(both, 16);
      scales.w0 = _mm512_mul_ps(head.d, _mm512_cvtepi32_ps(even));
      scales.w1 = _mm512_mul_ps(head.d, _mm512_cvtepi32_ps(odd));
    } else if constexpr (kSuperBlock) {
      const uint8_t* six = head.six_bits + 32 * in_record;
      scales.w0 = _mm512_mul_ps(head.d, BytesToFloats(six));
      scales.wm = _mm512_mul_ps(head.m, BytesToFloats(six + 16));
    } else if constexpr (kLayout.rule == ProductRule::kOneScale) {
      scales.w0 = LoadHalves(record + 32 * in_record);
    } else {
      scales.w0 = LoadHalves(record);
      scales.wm = _mm512_xor_ps(LoadHalves(record + 32), _mm512_set1_ps(-0.0f));
    }
    return scales;
  }
};

// Calls group(codes, record scales, index of the group) for all groups of a
// tile, ascending.
template <WeightFormat kFormat, typename Group>
__attribute__((always_inline)) inline void ForEachGroup(const std::byte* tile,
                                                        int64_t cols,
                                                        Group group) {
  using Reader = Reader512<kFormat>;
  constexpr TileLayout kLayout = Reader::kLayout;
  constexpr int64_t kRecordBytes = RecordBytes(kLayout);
  const int64_t groups = cols / kGroup;
  const int64_t records = groups / kLayout.groups_per_record;
  const std::byte* record =
      tile + (records * kLayout.front_bytes + 63) / 64 * 64;
  PrefetchLines(tile + 64, record);
  Head512 head;
  int64_t g = 0;
  while (g < groups) {
    Reader::ReadHead(tile + g / kLayout.groups_per_record * kLayout.front_bytes,
                     record, head);
    const int64_t left = groups - g;
    const int64_t num =
        left < kLayout.groups_per_record ? left : kLayout.groups_per_record;
    for (int64_t j = 0; j < num; ++j) {
      Codes512 codes;
      LoadCodes<kLayout.code_bits>(
          record + kLayout.scale_bytes + j * kLayout.code_bytes, codes);
      group(codes, Reader::ReadScales(record, head, j), g + j);
    }
    g += num;
    record += kRecordBytes;
  }
}

}  // namespace
}  // namespace millrace::kernels
