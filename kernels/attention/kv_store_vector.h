#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_layout.h"
#include "kernels/vector/lanes.h"

namespace millrace::kernels {
namespace {

// How a stored type is read and written. kScaleBytes: of the scale of 32 dims,
// 0 where an element is stored by itself. Magnitudes from kOverflow up to
// infinity round to infinity.
struct KvF32 {
  static constexpr int64_t kBytes = 4;
  static constexpr int64_t kScaleBytes = 0;
  static Lanes LoadAll(const std::byte* p) {
    return Load(reinterpret_cast<const float*>(p));
  }
  static Lanes LoadSome(const std::byte* p, int64_t n) {
    return LoadFirst(reinterpret_cast<const float*>(p), n);
  }
};
struct KvF16 {
  static constexpr int64_t kBytes = 2;
  static constexpr int64_t kScaleBytes = 0;
  static constexpr uint32_t kOverflow = 0x477ff000u;  // 65520
  static Lanes LoadAll(const std::byte* p) { return F32FromF16(LoadHalves(p)); }
  static Lanes LoadSome(const std::byte* p, int64_t n) {
    return F32FromF16(LoadFirstHalves(p, n));
  }
  static void Encode(Lanes a, uint16_t* h) { StoreF16(a, h); }
};
struct KvBf16 {
  static constexpr int64_t kBytes = 2;
  static constexpr int64_t kScaleBytes = 0;
  static constexpr uint32_t kOverflow = 0x7f7f8000u;
  static Lanes LoadAll(const std::byte* p) {
    return F32FromBf16(LoadHalves(p));
  }
  static Lanes LoadSome(const std::byte* p, int64_t n) {
    return F32FromBf16(LoadFirstHalves(p, n));
  }
  static void Encode(Lanes a, uint16_t* h) { StoreBf16(a, h); }
};
// Codes; the caller multiplies by the scale.
struct KvInt8 {
  static constexpr int64_t kBytes = 1;
  static constexpr int64_t kScaleBytes = 4;
  static Lanes LoadAll(const std::byte* p) { return F32FromBytes(p); }
  static Lanes LoadSome(const std::byte* p, int64_t n) {
    return F32FromFirstBytes(p, n);
  }
};

// Bytes of sixteen positions of the keys or values of one head.
template <typename Kv>
constexpr int64_t KvTileBytes(int64_t dims) {
  return 16 * (dims * Kv::kBytes + KvScaleGroups(dims) * Kv::kScaleBytes);
}

// Sixteen-bit types; f32 keeps its scalar version, which only copies.
template <typename Kv>
bool KvStore(const KvStoreArgs& args) {
  constexpr uint32_t kInfinityBits = 0x7f800000u;
  const int64_t dims = args.head_dim;
  const int64_t position = args.position_in_block;
  auto* head = reinterpret_cast<uint16_t*>(args.block);
  bool overflow = false;
  for (int64_t h = 0; h < args.num_kv_heads; ++h) {
    uint16_t* keys = head + position / 16 * dims * 16 + position % 16;
    uint16_t* values = head + (kKvBlockPositions + position) * dims;
    for (int64_t d = 0; d < dims; d += 16) {
      const int64_t n = dims - d < 16 ? dims - d : 16;
      const Lanes k = LoadFirst(args.k + h * dims + d, n);
      const Lanes v = LoadFirst(args.v + h * dims + d, n);
      overflow |= AnyMagnitudeIn(k, Kv::kOverflow, kInfinityBits);
      overflow |= AnyMagnitudeIn(v, Kv::kOverflow, kInfinityBits);
      uint16_t encoded[16];
      Kv::Encode(k, encoded);
      for (int64_t j = 0; j < n; ++j) {
        keys[(d + j) * 16] = encoded[j];
      }
      Kv::Encode(v, encoded);
      __builtin_memcpy(values + d, encoded,
                       static_cast<size_t>(n) * sizeof(uint16_t));
    }
    head += int64_t{2} * kKvBlockPositions * dims;
  }
  return !overflow;
}

// scalar::Int8Group; q holds kKvScaleDims.
inline float Int8Group(const float* x, int64_t num, int8_t* q) {
  const Lanes low = LoadFirst(x, num < 16 ? num : 16);
  const Lanes high = num > 16 ? LoadFirst(x + 16, num - 16) : Set1(0.0f);
  // 2^-100, below which a group counts as zero.
  constexpr float kSmallest = 0x1p-100f;
  const float a =
      LargestLane(Max(Max(low, Negate(low)), Max(high, Negate(high))));
  __builtin_memset(q, 0, kKvScaleDims);
  if ((NanMask(low) | NanMask(high)) != 0 || a == __builtin_inff()) {
    return __builtin_nanf("");
  }
  if (a < kSmallest) {
    return 0.0f;
  }
  const Lanes inverse = Set1(127.0f / a);
  StoreBytes(Rint(low * inverse), q);
  StoreBytes(Rint(high * inverse), q + 16);
  return a / 127.0f;
}

inline bool KvStoreInt8(const KvStoreArgs& args) {
  const int64_t dims = args.head_dim;
  const int64_t groups = KvScaleGroups(dims);
  const int64_t tile_bytes = KvTileBytes<KvInt8>(dims);
  const int64_t position = args.position_in_block;
  bool overflow = false;
  for (int64_t h = 0; h < args.num_kv_heads; ++h) {
    std::byte* keys = args.block + h * 8 * tile_bytes;
    std::byte* values = keys + 4 * tile_bytes;
    keys += position / 16 * tile_bytes;
    auto* key_scales = reinterpret_cast<float*>(keys + dims * 16);
    auto* value_scales =
        reinterpret_cast<float*>(values + kKvBlockPositions * dims) +
        position * groups;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t d = g * kKvScaleDims;
      const int64_t n = dims - d < kKvScaleDims ? dims - d : kKvScaleDims;
      int8_t q[kKvScaleDims];
      const float key_scale = Int8Group(args.k + h * dims + d, n, q);
      auto* codes = reinterpret_cast<int8_t*>(keys) + d * 16 + position % 16;
      for (int64_t j = 0; j < n; ++j) {
        codes[j * 16] = q[j];
      }
      const float value_scale = Int8Group(args.v + h * dims + d, n, q);
      __builtin_memcpy(values + position * dims + d, q, static_cast<size_t>(n));
      key_scales[g * 16 + position % 16] = key_scale;
      value_scales[g] = value_scale;
      // The largest code is +-127.
      overflow |= key_scale * 127.0f == __builtin_inff() ||
                  value_scale * 127.0f == __builtin_inff();
    }
  }
  return !overflow;
}

}  // namespace
}  // namespace millrace::kernels
