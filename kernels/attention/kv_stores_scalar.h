#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/attention/attention_layout.h"
#include "kernels/compute_mode.h"
#include "kernels/matmul/int8_group.h"
#include "kernels/vector/half.h"

namespace millrace::kernels::scalar {

// Index of K[position][d] and V[position][d] inside one KV head of a block.
inline int64_t KeyIndex(int64_t position, int64_t d, int64_t head_dim) {
  return (position / 16 * head_dim + d) * 16 + position % 16;
}
inline int64_t ValueIndex(int64_t position, int64_t d, int64_t head_dim) {
  return (kKvBlockPositions + position) * head_dim + d;
}

template <typename T>
T LoadAs(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

struct CodecF32 {
  using Stored = float;
  static float Encode(float x) { return x; }
  static float Decode(float x) { return x; }
};
struct CodecF16 {
  using Stored = uint16_t;
  static uint16_t Encode(float x) { return F16FromF32(x); }
  static float Decode(uint16_t h) { return F32FromF16(h); }
};
struct CodecBf16 {
  using Stored = uint16_t;
  static uint16_t Encode(float x) { return Bf16FromF32(x); }
  static float Decode(uint16_t h) { return F32FromBf16(h); }
};

// How one type keeps a KV head of a block, for scalar code: HeadBytes, Append a
// position (false on overflow), and Key and Value read an element back.

// Elements that are each stored by themselves.
template <typename Codec>
struct PlainStore {
  using Stored = typename Codec::Stored;
  static constexpr auto kBytes = static_cast<int64_t>(sizeof(Stored));

  static int64_t HeadBytes(int64_t dims) {
    return 2 * kKvBlockPositions * dims * kBytes;
  }
  static float Key(const std::byte* head, int64_t position, int64_t d,
                   int64_t dims) {
    return Codec::Decode(
        LoadAs<Stored>(head + KeyIndex(position, d, dims) * kBytes));
  }
  static float Value(const std::byte* head, int64_t position, int64_t d,
                     int64_t dims) {
    return Codec::Decode(
        LoadAs<Stored>(head + ValueIndex(position, d, dims) * kBytes));
  }
  static bool StoreElement(float x, std::byte* at) {
    const Stored stored = Codec::Encode(x);
    std::memcpy(at, &stored, sizeof(stored));
    return !std::isinf(Codec::Decode(stored)) || std::isinf(x);
  }
  static bool Append(const float* k, const float* v, std::byte* head,
                     int64_t position, int64_t dims) {
    bool fits = true;
    for (int64_t d = 0; d < dims; ++d) {
      fits &= StoreElement(k[d], head + KeyIndex(position, d, dims) * kBytes);
      fits &= StoreElement(v[d], head + ValueIndex(position, d, dims) * kBytes);
    }
    return fits;
  }
};

// Codes and scales of KvType::kInt8.
struct Int8Store {
  static int64_t TileBytes(int64_t dims) {
    return 16 * dims + 64 * KvScaleGroups(dims);
  }
  static int64_t HeadBytes(int64_t dims) { return 8 * TileBytes(dims); }
  static int64_t KeyCode(int64_t position, int64_t d, int64_t dims) {
    return position / 16 * TileBytes(dims) + d * 16 + position % 16;
  }
  static int64_t KeyScale(int64_t position, int64_t group, int64_t dims) {
    return position / 16 * TileBytes(dims) + dims * 16 + group * 64 +
           position % 16 * 4;
  }
  static int64_t ValueCode(int64_t position, int64_t d, int64_t dims) {
    return 4 * TileBytes(dims) + position * dims + d;
  }
  static int64_t ValueScale(int64_t position, int64_t group, int64_t dims) {
    return 4 * TileBytes(dims) + kKvBlockPositions * dims +
           (position * KvScaleGroups(dims) + group) * 4;
  }
  static float Key(const std::byte* head, int64_t position, int64_t d,
                   int64_t dims) {
    const int64_t group = d / kKvScaleDims;
    return LoadAs<float>(head + KeyScale(position, group, dims)) *
           LoadAs<int8_t>(head + KeyCode(position, d, dims));
  }
  static float Value(const std::byte* head, int64_t position, int64_t d,
                     int64_t dims) {
    const int64_t group = d / kKvScaleDims;
    return LoadAs<float>(head + ValueScale(position, group, dims)) *
           LoadAs<int8_t>(head + ValueCode(position, d, dims));
  }
  // The largest code is +-127: its product overflows where the scale of a
  // number next to the largest float was rounded up.
  static bool Fits(float scale) { return !std::isinf(scale * 127.0f); }

  static bool Append(const float* k, const float* v, std::byte* head,
                     int64_t position, int64_t dims) {
    bool fits = true;
    for (int64_t d = 0; d < dims; d += kKvScaleDims) {
      const int64_t group = d / kKvScaleDims;
      const int64_t num = std::min(dims - d, int64_t{kKvScaleDims});
      int8_t keys[kKvScaleDims];
      int8_t values[kKvScaleDims];
      const float key_scale = Int8Group(k + d, num, keys);
      const float value_scale = Int8Group(v + d, num, values);
      std::memcpy(head + KeyScale(position, group, dims), &key_scale, 4);
      std::memcpy(head + ValueScale(position, group, dims), &value_scale, 4);
      for (int64_t i = 0; i < num; ++i) {
        std::memcpy(head + KeyCode(position, d + i, dims), &keys[i], 1);
        std::memcpy(head + ValueCode(position, d + i, dims), &values[i], 1);
      }
      fits &= Fits(key_scale) && Fits(value_scale);
    }
    return fits;
  }
};

}  // namespace millrace::kernels::scalar
