#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/neon_codes.h"
#include "kernels/quant/tile_layout.h"

// Where the groups of quantised tiles stand and how their scales come into NEON
// registers. See tile_walk.h for the unnamed namespace.
namespace millrace::kernels {
namespace {

inline uint16x4_t LoadFourShorts(const std::byte* from) {
  return vld1_u16(static_cast<const uint16_t*>(static_cast<const void*>(from)));
}
inline float32x4_t LoadHalves(const std::byte* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(LoadFourShorts(from)));
}
inline uint32x4_t LoadFourBytes(const void* from) {
  uint32_t word;
  __builtin_memcpy(&word, from, sizeof(word));
  const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(word)));
  return vmovl_u16(vget_low_u16(wide));
}

// Scales of four rows, or what else has their type.
template <ScaleType kType>
__attribute__((always_inline)) inline float32x4_t LoadScales(
    const std::byte* from) {
  if constexpr (kType == ScaleType::kF16) {
    return LoadHalves(from);
  } else if constexpr (kType == ScaleType::kBf16) {
    return vreinterpretq_f32_u32(vshll_n_u16(LoadFourShorts(from), 16));
  } else {
    const uint32x4_t exponent = vshlq_n_u32(LoadFourBytes(from), 23);
    return vmulq_f32(vreinterpretq_f32_u32(exponent), vdupq_n_f32(0.5f));
  }
}

// Scales of a group for one quarter.
struct ScalesNeon {
  float32x4_t w0;   // of the first 16 elements, or of the group
  float32x4_t w1;   // of the second 16
  float32x4_t wm0;  // minima in the same way
  float32x4_t wm1;
};

// Six-bit scales of a super-block: [group][2][16 rows].
struct SixBits {
  alignas(16) uint8_t value[256];
};

inline void UnpackSixBits(const std::byte* from, SixBits& out) {
  const uint8x16_t low = vdupq_n_u8(63);
#pragma GCC unroll 4
  for (int at = 0; at < 64; at += 16) {
    const uint8x16_t z0 = LoadRegister(from + at);
    const uint8x16_t z1 = LoadRegister(from + 64 + at);
    const uint8x16_t z2 = LoadRegister(from + 128 + at);
    vst1q_u8(out.value + at, vandq_u8(z0, low));
    vst1q_u8(out.value + 64 + at, vandq_u8(z1, low));
    vst1q_u8(out.value + 128 + at, vandq_u8(z2, low));
    // Bits 0-1 from the first, 2-3 from the second, 4-5 from the third.
    const uint8x16_t two = vshrq_n_u8(z0, 6);
    const uint8x16_t four = vsliq_n_u8(two, vshrq_n_u8(z1, 6), 2);
    vst1q_u8(out.value + 192 + at, vsliq_n_u8(four, vshrq_n_u8(z2, 6), 4));
  }
}

// A record of a tile: where its scales stand.
struct RecordPlace {
  const std::byte* front;  // f16 d[16] where they stand before the records
  const std::byte* record;
};

template <WeightFormat kFormat>
struct ReaderNeon {
  static constexpr TileLayout kLayout = LayoutOf(kFormat);
  static constexpr bool kSixBits = kLayout.sub_scales == SubScales::kSixBits;

  __attribute__((always_inline)) static ScalesNeon ReadScales(
      const RecordPlace& place, const SixBits& six, int64_t in_record,
      int quarter) {
    if constexpr (kLayout.rule == ProductRule::kTwoHalves) {
      return ReadTwoHalves(place, six, in_record, quarter);
    } else if constexpr (kLayout.sub_scales != SubScales::kNone) {
      return ReadMinima(place, six, in_record, quarter);
    } else {
      return ReadBlock(place, in_record, quarter);
    }
  }

 private:
  __attribute__((always_inline)) static ScalesNeon ReadTwoHalves(
      const RecordPlace& place, const SixBits& six, int64_t in_record,
      int quarter) {
    int32x4_t first;
    int32x4_t second;
    if constexpr (kSixBits) {
      const uint8_t* at = six.value + 32 * in_record + kQuarterRows * quarter;
      const int32x4_t zero = vdupq_n_s32(32);
      first = vsubq_s32(vreinterpretq_s32_u32(LoadFourBytes(at)), zero);
      second = vsubq_s32(vreinterpretq_s32_u32(LoadFourBytes(at + 16)), zero);
    } else {
      // Both halves of a row side by side.
      const std::byte* at =
          place.record + 32 * in_record + 2 * kQuarterRows * quarter;
      const int16x8_t both = vmovl_s8(
          vld1_s8(static_cast<const int8_t*>(static_cast<const void*>(at))));
      const int32x4_t rows = vreinterpretq_s32_s16(both);
      first = vshrq_n_s32(vshlq_n_s32(rows, 16), 16);
      second = vshrq_n_s32(rows, 16);
    }
    const float32x4_t d = LoadHalves(place.front + 2 * kQuarterRows * quarter);
    ScalesNeon scales;
    scales.w0 = vmulq_f32(d, vcvtq_f32_s32(first));
    scales.w1 = vmulq_f32(d, vcvtq_f32_s32(second));
    return scales;
  }

  __attribute__((always_inline)) static ScalesNeon ReadMinima(
      const RecordPlace& place, const SixBits& six, int64_t in_record,
      int quarter) {
    const std::byte* head = place.record + 2 * kQuarterRows * quarter;
    const float32x4_t d = LoadHalves(head);
    const float32x4_t dmin = LoadHalves(head + 32);
    ScalesNeon scales;
    if constexpr (kSixBits) {
      const uint8_t* at = six.value + 32 * in_record + kQuarterRows * quarter;
      scales.w0 = vmulq_f32(d, vcvtq_f32_u32(LoadFourBytes(at)));
      scales.wm0 = vmulq_f32(dmin, vcvtq_f32_u32(LoadFourBytes(at + 16)));
    } else {
      // Rows as 32 bits: scale, minimum of the first half in bits 0-7, of the
      // second in bits 16-23.
      const std::byte* at = head + 64 + 32 * in_record;
      const uint32x4_t rows = vreinterpretq_u32_u16(vmovl_u8(
          vld1_u8(static_cast<const uint8_t*>(static_cast<const void*>(at)))));
      scales.w0 = vmulq_f32(d, Nibble(rows));
      scales.wm0 = vmulq_f32(dmin, Nibble(vshrq_n_u32(rows, 4)));
      scales.w1 = vmulq_f32(d, Nibble(vshrq_n_u32(rows, 16)));
      scales.wm1 = vmulq_f32(dmin, Nibble(vshrq_n_u32(rows, 20)));
    }
    return scales;
  }

  __attribute__((always_inline)) static ScalesNeon ReadBlock(
      const RecordPlace& place, int64_t in_record, int quarter) {
    constexpr int kBytes = kLayout.scale == ScaleType::kE8m0 ? 1 : 2;
    const std::byte* at =
        place.record +
        kBytes * (4 * kQuarterRows * in_record + kQuarterRows * quarter);
    ScalesNeon scales;
    scales.w0 = LoadScales<kLayout.scale>(at);
    if constexpr (kLayout.minimum == Minimum::kNegated) {
      scales.wm0 = vnegq_f32(LoadScales<kLayout.scale>(at + 32));
    } else if constexpr (kLayout.minimum == Minimum::kZeroPoint) {
      scales.wm0 = vmulq_f32(scales.w0, LoadScales<kLayout.scale>(at + 32));
    }
    return scales;
  }

  static float32x4_t Nibble(uint32x4_t bits) {
    return vcvtq_f32_u32(vandq_u32(bits, vdupq_n_u32(15)));
  }
};

// Calls group(codes of the group, place, six bits, index in its record) for all
// groups of a tile, ascending.
template <WeightFormat kFormat, typename Group>
__attribute__((always_inline)) inline void ForEachGroup(const std::byte* tile,
                                                        int64_t cols,
                                                        Group group) {
  using Reader = ReaderNeon<kFormat>;
  constexpr TileLayout kLayout = Reader::kLayout;
  constexpr int64_t kCodeBytes = CodeBytes(kLayout);
  constexpr int64_t kRecordBytes = RecordBytes(kLayout);
  const int64_t groups = cols / kGroup;
  const int64_t records = groups / kLayout.groups_per_record;
  RecordPlace place = {tile,
                       tile + (records * kLayout.front_bytes + 63) / 64 * 64};
  SixBits six;
  int64_t done = 0;
  while (done < groups) {
    if constexpr (Reader::kSixBits) {
      constexpr int kHeadBytes = kLayout.scale_bytes - 192;
      UnpackSixBits(place.record + kHeadBytes, six);
    }
    const int64_t left = groups - done;
    const int64_t num =
        left < kLayout.groups_per_record ? left : kLayout.groups_per_record;
    for (int64_t j = 0; j < num; ++j) {
      group(place.record + kLayout.scale_bytes + j * kCodeBytes, place, six, j);
    }
    done += num;
    place.front += kLayout.front_bytes;
    place.record += kRecordBytes;
  }
}

}  // namespace
}  // namespace millrace::kernels
