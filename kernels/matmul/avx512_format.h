#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/avx512_codes.h"
#include "kernels/matmul/prefetch.h"
#include "kernels/quant/tile.h"
#include "kernels/quant/tile_layout.h"

// Where the groups of quantised tiles stand and how their scales come into
// registers. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

inline __m512 LoadHalves(const std::byte* from) {
  return _mm512_cvtph_ps(LoadYmm(from));
}
inline __m512i LoadSixteenBytes(const void* from) {
  return _mm512_cvtepu8_epi32(LoadXmm(from));
}
inline __m512 BytesToFloats(const void* from) {
  return _mm512_cvtepi32_ps(LoadSixteenBytes(from));
}

// Scales of 16 rows, or what else has their type.
template <ScaleType kType>
__attribute__((always_inline)) inline __m512 LoadScales(const std::byte* from) {
  if constexpr (kType == ScaleType::kF16) {
    return LoadHalves(from);
  } else if constexpr (kType == ScaleType::kBf16) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(LoadYmm(from)), 16));
  } else {
    return _mm512_mul_ps(
        _mm512_castsi512_ps(_mm512_slli_epi32(LoadSixteenBytes(from), 23)),
        _mm512_set1_ps(0.5f));
  }
}

// Minima and scales: of the group, or of its halves.
struct Scales512 {
  __m512 w0;
  __m512 w1;
  __m512 wm0;
  __m512 wm1;
};

// What is read once for a record.
struct Head512 {
  __m512 d;
  __m512 m;
  // Six-bit scales: [group][2][16 rows].
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

template <WeightFormat kFormat>
struct Reader512 {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kSixBits = kLayout.sub_scales == SubScales::kSixBits;

  // `front`: the f16 d of this record where they stand before the records.
  static void ReadHead(const std::byte* front, const std::byte* record,
                       Head512& head) {
    if constexpr (kLayout.sub_scales == SubScales::kNone) {
      return;
    }
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      head.d = LoadHalves(front);
    } else {
      head.d = LoadHalves(record);
      head.m = LoadHalves(record + 32);
    }
    if constexpr (kSixBits) {
      constexpr int kHeadBytes = kLayout.scale_bytes - 192;
      UnpackSixBits(record + kHeadBytes, head.six_bits);
    } else {
      PrefetchLines(record + 64, record + kLayout.scale_bytes);
    }
  }

  static Scales512 ReadScales(const std::byte* record, const Head512& head,
                              int64_t in_record) {
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      return ReadTwoHalves(record, head, in_record);
    } else if constexpr (kLayout.sub_scales != SubScales::kNone) {
      return ReadMinima(record, head, in_record);
    } else {
      return ReadBlock(record, in_record);
    }
  }

 private:
  static Scales512 ReadTwoHalves(const std::byte* record, const Head512& head,
                                 int64_t in_record) {
    __m512i even;
    __m512i odd;
    if constexpr (kSixBits) {
      const uint8_t* at = head.six_bits + 32 * in_record;
      const __m512i zero = _mm512_set1_epi32(32);
      even = _mm512_sub_epi32(LoadSixteenBytes(at), zero);
      odd = _mm512_sub_epi32(LoadSixteenBytes(at + 16), zero);
    } else {
      const __m512i both =
          _mm512_cvtepi8_epi16(LoadYmm(record + 32 * in_record));
      even = _mm512_srai_epi32(_mm512_slli_epi32(both, 16), 16);
      odd = _mm512_srai_epi32(both, 16);
    }
    Scales512 scales;
    scales.w0 = _mm512_mul_ps(head.d, _mm512_cvtepi32_ps(even));
    scales.w1 = _mm512_mul_ps(head.d, _mm512_cvtepi32_ps(odd));
    return scales;
  }

  static Scales512 ReadMinima(const std::byte* record, const Head512& head,
                              int64_t in_record) {
    Scales512 scales;
    if constexpr (kSixBits) {
      const uint8_t* six = head.six_bits + 32 * in_record;
      scales.w0 = _mm512_mul_ps(head.d, BytesToFloats(six));
      scales.wm0 = _mm512_mul_ps(head.m, BytesToFloats(six + 16));
    } else {
      // Rows as 32 bits: scale, minimum of the first half in bits 0-7, of the
      // second in bits 16-23.
      const __m512i both =
          _mm512_cvtepu8_epi16(LoadYmm(record + 64 + 32 * in_record));
      scales.w0 = _mm512_mul_ps(head.d, Nibble<0>(both));
      scales.wm0 = _mm512_mul_ps(head.m, Nibble<4>(both));
      scales.w1 = _mm512_mul_ps(head.d, Nibble<16>(both));
      scales.wm1 = _mm512_mul_ps(head.m, Nibble<20>(both));
    }
    return scales;
  }

  static Scales512 ReadBlock(const std::byte* record, int64_t in_record) {
    constexpr int kBytes = kLayout.scale == ScaleType::kE8m0 ? 1 : 2;
    const std::byte* at = record + kBytes * kTileRows * in_record;
    Scales512 scales;
    scales.w0 = LoadScales<kLayout.scale>(at);
    if constexpr (kLayout.minimum == Minimum::kNegated) {
      scales.wm0 = _mm512_xor_ps(LoadScales<kLayout.scale>(at + 32),
                                 _mm512_set1_ps(-0.0f));
    } else if constexpr (kLayout.minimum == Minimum::kZeroPoint) {
      scales.wm0 = _mm512_mul_ps(scales.w0, LoadScales<kLayout.scale>(at + 32));
    }
    return scales;
  }

  template <int kBit>
  static __m512 Nibble(__m512i bits) {
    return _mm512_cvtepi32_ps(
        _mm512_and_si512(_mm512_srli_epi32(bits, kBit), _mm512_set1_epi32(15)));
  }
};

// Calls group(codes, record scales, index of the group) for the groups [begin,
// end) of a tile, ascending. kAhead: asks for the weights behind.
template <WeightFormat kFormat, bool kAhead, typename Group>
__attribute__((always_inline)) inline void ForGroups(const std::byte* tile,
                                                     int64_t cols,
                                                     int64_t begin, int64_t end,
                                                     Group group) {
  using Reader = Reader512<kFormat>;
  constexpr TileLayout kLayout = Reader::kLayout;
  constexpr int64_t kRecordBytes = RecordBytes(kLayout);
  constexpr int64_t kCodeBytes = CodeBytes(kLayout);
  const int64_t records = cols / kGroup / kLayout.groups_per_record;
  const std::byte* first =
      tile + (records * kLayout.front_bytes + 63) / 64 * 64;
  if (begin == 0) {
    PrefetchLines(tile + 64, first);
  }
  const std::byte* record =
      first + begin / kLayout.groups_per_record * kRecordBytes;
  Head512 head;
  int64_t g = begin;
  int64_t in_record = begin % kLayout.groups_per_record;
  while (g < end) {
    Reader::ReadHead(tile + g / kLayout.groups_per_record * kLayout.front_bytes,
                     record, head);
    const int64_t left = end - g;
    const int64_t there = kLayout.groups_per_record - in_record;
    const int64_t num = left < there ? left : there;
    for (int64_t j = in_record; j < in_record + num; ++j) {
      const std::byte* from = record + kLayout.scale_bytes + j * kCodeBytes;
      if constexpr (kAhead) {
        PrefetchWindow(from, from + kRecordBytes / kLayout.groups_per_record);
      }
      Codes512 codes;
      LoadCodes<kFormat>(from, codes);
      group(codes, Reader::ReadScales(record, head, j), g + j - in_record);
    }
    g += num;
    in_record = 0;
    record += kRecordBytes;
  }
}

}  // namespace
}  // namespace millrace::kernels
