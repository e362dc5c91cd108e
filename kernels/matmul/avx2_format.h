#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/prefetch.h"
#include "kernels/quant/tile_layout.h"

// How groups of quantised tiles come into 256-bit registers: a half is 8 of the
// 16 rows of a tile. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

constexpr int kNumQuads = 8;
constexpr int kHalfRows = 8;

inline __m256i LoadYmm(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline __m128i LoadXmm(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
inline __m256 LoadHalves(const std::byte* from) {
  return _mm256_cvtph_ps(LoadXmm(from));
}

// Codes of quad `i` of one half of a tile: unsigned, but Q8_0's as they are.
// `from`: the group's codes, moved to the half.
template <int kBits>
__attribute__((always_inline)) inline __m256i LoadQuad(const std::byte* from,
                                                       int i) {
  if constexpr (kBits == 8) {
    return LoadYmm(from + 64 * i);
  }
  const __m256i both = LoadYmm(from + 64 * (i / 2));
  const __m256i low = _mm256_and_si256(
      i % 2 == 0 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
  if constexpr (kBits == 5) {
    const __m256i plane = LoadYmm(from + 256);
    const __m256i moved = i < 4 ? _mm256_slli_epi16(plane, 4 - i)
                                : _mm256_srli_epi16(plane, i - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(16)));
  }
  if constexpr (kBits == 6) {
    const __m256i plane = LoadYmm(from + 256 + 64 * (i / 4));
    const int at = 2 * (i % 4);
    const __m256i moved = at < 4 ? _mm256_slli_epi16(plane, 4 - at)
                                 : _mm256_srli_epi16(plane, at - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(48)));
  }
  return low;
}

// Scales of a group for one half of a tile.
struct Scales256 {
  __m256 w0;  // of the first 16 elements, or of the group
  __m256 w1;  // of the second 16
  __m256 wm;
};

// Super-blocks of Q4_K and Q5_K: [group][scale, minimum][16 rows].
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

inline __m256 BytesToFloats(const uint8_t* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(
      static_cast<const __m128i*>(static_cast<const void*>(from)))));
}

// A record of a tile: where its scales stand.
struct RecordPlace {
  const std::byte* front;  // f16 d[16] where they stand before the records
  const std::byte* record;
};

template <WeightFormat kFormat>
struct Reader256 {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kSuperBlock = kLayout.groups_per_record == 8;
  static constexpr bool kSixBits =
      kSuperBlock && kLayout.rule == ProductRule::kScaleAndMinimum;

  static Scales256 ReadScales(const RecordPlace& place, const SixBits& six,
                              int64_t in_record, int half) {
    Scales256 scales;
    const std::byte* record = place.record + 2 * kHalfRows * half;
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      const __m256 d = LoadHalves(place.front + 2 * kHalfRows * half);
      const __m256i both =
          _mm256_cvtepi8_epi16(LoadXmm(record + 32 * in_record));
      const __m256i even = _mm256_srai_epi32(_mm256_slli_epi32(both, 16), 16);
      const __m256i odd = _mm256_srai_epi32(both, 16);
      scales.w0 = _mm256_mul_ps(d, _mm256_cvtepi32_ps(even));
      scales.w1 = _mm256_mul_ps(d, _mm256_cvtepi32_ps(odd));
    } else if constexpr (kSixBits) {
      const uint8_t* at = six.value + 32 * in_record + kHalfRows * half;
      scales.w0 = _mm256_mul_ps(LoadHalves(record), BytesToFloats(at));
      scales.wm =
          _mm256_mul_ps(LoadHalves(record + 32), BytesToFloats(at + 16));
    } else if constexpr (kLayout.rule == ProductRule::kOneScale) {
      scales.w0 = LoadHalves(record + 32 * in_record);
    } else {
      scales.w0 = LoadHalves(record);
      scales.wm = _mm256_xor_ps(LoadHalves(record + 32), _mm256_set1_ps(-0.0f));
    }
    return scales;
  }
};

// Calls group(codes of the group, place, six bits, index in its record) for all
// groups of a tile, ascending.
template <WeightFormat kFormat, typename Group>
__attribute__((always_inline)) inline void ForEachGroup(const std::byte* tile,
                                                        int64_t cols,
                                                        Group group) {
  using Reader = Reader256<kFormat>;
  constexpr TileLayout kLayout = Reader::kLayout;
  const int64_t groups = cols / kGroup;
  const int64_t records = groups / kLayout.groups_per_record;
  RecordPlace place = {tile,
                       tile + (records * kLayout.front_bytes + 63) / 64 * 64};
  PrefetchLines(tile + 64, place.record);
  SixBits six;
  int64_t done = 0;
  while (done < groups) {
    if constexpr (Reader::kSixBits) {
      UnpackSixBits(place.record + 64, six);
    }
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      PrefetchLines(place.record + 64, place.record + kLayout.scale_bytes);
    }
    const int64_t left = groups - done;
    const int64_t num =
        left < kLayout.groups_per_record ? left : kLayout.groups_per_record;
    for (int64_t j = 0; j < num; ++j) {
      group(place.record + kLayout.scale_bytes + j * kLayout.code_bytes, place,
            six, j);
    }
    done += num;
    place.front += kLayout.front_bytes;
    place.record += RecordBytes(kLayout);
  }
}

}  // namespace
}  // namespace millrace::kernels
