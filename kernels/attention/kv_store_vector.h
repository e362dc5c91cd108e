#pragma once

#include "kernels/attention/attention.h"
#include "kernels/vector/lanes.h"

namespace millrace::kernels {
namespace {

// How a stored type is read and written. kLargest..: magnitudes from kOverflow
// up to infinity round to infinity.
struct KvF32 {
  static constexpr int64_t kBytes = 4;
  static Lanes LoadAll(const std::byte* p) {
    return Load(reinterpret_cast<const float*>(p));
  }
  static Lanes LoadSome(const std::byte* p, int64_t n) {
    return LoadFirst(reinterpret_cast<const float*>(p), n);
  }
};
struct KvF16 {
  static constexpr int64_t kBytes = 2;
  static constexpr uint32_t kOverflow = 0x477ff000u;  // 65520
  static Lanes LoadAll(const std::byte* p) { return F32FromF16(LoadHalves(p)); }
  static Lanes LoadSome(const std::byte* p, int64_t n) {
    return F32FromF16(LoadFirstHalves(p, n));
  }
  static void Encode(Lanes a, uint16_t* h) { StoreF16(a, h); }
};
struct KvBf16 {
  static constexpr int64_t kBytes = 2;
  static constexpr uint32_t kOverflow = 0x7f7f8000u;
  static Lanes LoadAll(const std::byte* p) {
    return F32FromBf16(LoadHalves(p));
  }
  static Lanes LoadSome(const std::byte* p, int64_t n) {
    return F32FromBf16(LoadFirstHalves(p, n));
  }
  static void Encode(Lanes a, uint16_t* h) { StoreBf16(a, h); }
};

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

}  // namespace
}  // namespace millrace::kernels
