#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/asks_ahead.h"
#include "kernels/matmul/avx2_codes.h"
#include "kernels/matmul/prefetch.h"
#include "kernels/matmul/tile_walk.h"
#include "kernels/quant/tile.h"
#include "kernels/quant/tile_layout.h"

// Where the groups of quantised tiles stand and how their scales come into
// 256-bit registers. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

inline __m256 LoadHalves(const std::byte* from) {
  return _mm256_cvtph_ps(LoadXmm(from));
}
inline __m256i LoadEightBytes(const void* from) {
  return _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(static_cast<const __m128i*>(from)));
}
inline __m256 BytesToFloats(const void* from) {
  return _mm256_cvtepi32_ps(LoadEightBytes(from));
}

// Scales of 8 rows, or what else has their type.
template <ScaleType kType>
__attribute__((always_inline)) inline __m256 LoadScales(const std::byte* from) {
  if constexpr (kType == ScaleType::kF16) {
    return LoadHalves(from);
  } else if constexpr (kType == ScaleType::kBf16) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(LoadXmm(from)), 16));
  } else {
    return _mm256_mul_ps(
        _mm256_castsi256_ps(_mm256_slli_epi32(LoadEightBytes(from), 23)),
        _mm256_set1_ps(0.5f));
  }
}

// Scales of a group for one half of a tile.
struct Scales256 {
  __m256 w0;   // of the first 16 elements, or of the group
  __m256 w1;   // of the second 16
  __m256 wm0;  // minima in the same way
  __m256 wm1;
};

// Six-bit scales of a super-block: [group][2][16 rows].
struct SixBits {
  alignas(32) uint8_t value[256];
};

inline void StoreYmm(__m256i value, void* to) {
  _mm256_store_si256(static_cast<__m256i*>(to), value);
}

inline void UnpackSixBits(const std::byte* from, SixBits& out) {
  const __m256i low = _mm256_set1_epi8(63);
  const __m256i top = _mm256_set1_epi8(-64);
#pragma GCC unroll 2
  for (int at = 0; at < 64; at += 32) {
    const __m256i z0 = LoadYmm(from + at);
    const __m256i z1 = LoadYmm(from + 64 + at);
    const __m256i z2 = LoadYmm(from + 128 + at);
    StoreYmm(_mm256_and_si256(z0, low), out.value + at);
    StoreYmm(_mm256_and_si256(z1, low), out.value + 64 + at);
    StoreYmm(_mm256_and_si256(z2, low), out.value + 128 + at);
    const __m256i v0 = _mm256_srli_epi16(_mm256_and_si256(z0, top), 6);
    const __m256i v1 = _mm256_srli_epi16(_mm256_and_si256(z1, top), 4);
    const __m256i v2 = _mm256_srli_epi16(_mm256_and_si256(z2, top), 2);
    StoreYmm(_mm256_or_si256(_mm256_or_si256(v0, v1), v2),
             out.value + 192 + at);
  }
}

// A record of a tile: where its scales stand.
struct RecordPlace {
  const std::byte* front;  // f16 d[16] where they stand before the records
  const std::byte* record;
};

template <WeightFormat kFormat>
struct Reader256 {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kSixBits = kLayout.sub_scales == SubScales::kSixBits;

  static Scales256 ReadScales(const RecordPlace& place, const SixBits& six,
                              int64_t in_record, int half) {
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      return ReadTwoHalves(place, six, in_record, half);
    } else if constexpr (kLayout.sub_scales != SubScales::kNone) {
      return ReadMinima(place, six, in_record, half);
    } else {
      return ReadBlock(place, in_record, half);
    }
  }

 private:
  static Scales256 ReadTwoHalves(const RecordPlace& place, const SixBits& six,
                                 int64_t in_record, int half) {
    const __m256 d = LoadHalves(place.front + 2 * kHalfRows * half);
    __m256i even;
    __m256i odd;
    if constexpr (kSixBits) {
      const uint8_t* at = six.value + 32 * in_record + kHalfRows * half;
      even = _mm256_sub_epi32(LoadEightBytes(at), _mm256_set1_epi32(32));
      odd = _mm256_sub_epi32(LoadEightBytes(at + 16), _mm256_set1_epi32(32));
    } else {
      const __m256i both = _mm256_cvtepi8_epi16(
          LoadXmm(place.record + 32 * in_record + 2 * kHalfRows * half));
      even = _mm256_srai_epi32(_mm256_slli_epi32(both, 16), 16);
      odd = _mm256_srai_epi32(both, 16);
    }
    Scales256 scales;
    scales.w0 = _mm256_mul_ps(d, _mm256_cvtepi32_ps(even));
    scales.w1 = _mm256_mul_ps(d, _mm256_cvtepi32_ps(odd));
    return scales;
  }

  static Scales256 ReadMinima(const RecordPlace& place, const SixBits& six,
                              int64_t in_record, int half) {
    const std::byte* head = place.record + 2 * kHalfRows * half;
    const __m256 d = LoadHalves(head);
    const __m256 dmin = LoadHalves(head + 32);
    Scales256 scales;
    if constexpr (kSixBits) {
      const uint8_t* at = six.value + 32 * in_record + kHalfRows * half;
      scales.w0 = _mm256_mul_ps(d, BytesToFloats(at));
      scales.wm0 = _mm256_mul_ps(dmin, BytesToFloats(at + 16));
    } else {
      // Rows as 32 bits: scale, minimum of the first half in bits 0-7, of the
      // second in bits 16-23.
      const __m256i both =
          _mm256_cvtepu8_epi16(LoadXmm(head + 64 + 32 * in_record));
      scales.w0 = _mm256_mul_ps(d, Nibble<0>(both));
      scales.wm0 = _mm256_mul_ps(dmin, Nibble<4>(both));
      scales.w1 = _mm256_mul_ps(d, Nibble<16>(both));
      scales.wm1 = _mm256_mul_ps(dmin, Nibble<20>(both));
    }
    return scales;
  }

  static Scales256 ReadBlock(const RecordPlace& place, int64_t in_record,
                             int half) {
    constexpr int kBytes = kLayout.scale == ScaleType::kE8m0 ? 1 : 2;
    const std::byte* at =
        place.record + kBytes * (kTileRows * in_record + kHalfRows * half);
    Scales256 scales;
    scales.w0 = LoadScales<kLayout.scale>(at);
    if constexpr (kLayout.minimum == Minimum::kNegated) {
      scales.wm0 = _mm256_xor_ps(LoadScales<kLayout.scale>(at + 32),
                                 _mm256_set1_ps(-0.0f));
    } else if constexpr (kLayout.minimum == Minimum::kZeroPoint) {
      scales.wm0 = _mm256_mul_ps(scales.w0, LoadScales<kLayout.scale>(at + 32));
    }
    return scales;
  }

  template <int kBit>
  static __m256 Nibble(__m256i bits) {
    return _mm256_cvtepi32_ps(
        _mm256_and_si256(_mm256_srli_epi32(bits, kBit), _mm256_set1_epi32(15)));
  }
};

// How far ahead of the group at hand a tile that comes from memory is asked
// for. One token is otherwise computed in the shadow of each miss: with it
// Q4_0, Q4_K, Q5_0 and Q6_K stream at 1.2 to 1.45 times the rate, and Q8_0,
// whose groups are long and which one group ahead suits best, at 1.15 (Zen 3,
// one thread). Where AsksAhead() a window is (prefetch.h).
template <WeightFormat kFormat>
constexpr int64_t AheadBytes() {
  return LayoutOf(kFormat).code_bits == 8 ? 512 : 2048;
}

// Calls group(codes of the group, place, six bits, index in its record) for the
// groups [begin, end) of a tile, ascending.
template <WeightFormat kFormat, typename Group>
__attribute__((always_inline)) inline void ForGroups(const std::byte* tile,
                                                     int64_t cols,
                                                     int64_t begin, int64_t end,
                                                     bool from_memory,
                                                     Group group) {
  using Reader = Reader256<kFormat>;
  constexpr TileLayout kLayout = Reader::kLayout;
  constexpr int64_t kCodeBytes = CodeBytes(kLayout);
  constexpr int64_t kRecordBytes = RecordBytes(kLayout);
  constexpr int64_t kGroupBytes = kRecordBytes / kLayout.groups_per_record;
  const int64_t first = begin / kLayout.groups_per_record;
  RecordPlace place = {tile + first * kLayout.front_bytes,
                       tile + FrontBytes(kLayout, cols) + first * kRecordBytes};
  if (begin == 0) {
    PrefetchLines(tile + 64, place.record);
  }
  const bool windows = from_memory && AsksAhead();
  SixBits six;
  int64_t in_record = begin % kLayout.groups_per_record;
  while (begin < end) {
    if constexpr (Reader::kSixBits) {
      constexpr int kHeadBytes = kLayout.scale_bytes - 192;
      UnpackSixBits(place.record + kHeadBytes, six);
    } else if constexpr (kLayout.sub_scales != SubScales::kNone) {
      PrefetchLines(place.record + 64, place.record + kLayout.scale_bytes);
    }
    const int64_t left = end - begin + in_record;
    const int64_t last =
        left < kLayout.groups_per_record ? left : kLayout.groups_per_record;
    begin += last - in_record;
    for (; in_record < last; ++in_record) {
      const std::byte* codes =
          place.record + kLayout.scale_bytes + in_record * kCodeBytes;
      if (windows) {
        PrefetchWindow(codes, codes + kGroupBytes);
      } else if (from_memory) {
        PrefetchLines(codes + AheadBytes<kFormat>(),
                      codes + AheadBytes<kFormat>() + kGroupBytes);
      }
      group(codes, place, six, in_record);
    }
    in_record = 0;
    place.front += kLayout.front_bytes;
    place.record += kRecordBytes;
  }
}

// All of them.
template <WeightFormat kFormat, typename Group>
__attribute__((always_inline)) inline void ForEachGroup(const std::byte* tile,
                                                        int64_t cols,
                                                        bool from_memory,
                                                        Group group) {
  ForGroups<kFormat>(tile, cols, 0, cols / kGroup, from_memory, group);
}

// The same tile for the tokens of a panel from `begin` on.
inline PanelArgs SliceOf(const PanelArgs& args, int64_t begin,
                         int64_t token_bytes) {
  PanelArgs slice = args;
  slice.panel += begin * token_bytes;
  slice.sums += begin * kTileRows;
  return slice;
}

}  // namespace
}  // namespace millrace::kernels
