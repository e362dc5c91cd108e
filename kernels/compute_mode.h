#pragma once

#include <cstdint>

namespace millrace::kernels {

// kFast: activations meet quantised weights as int8 and BF16 weights as bf16.
// kExact: activations stay f32, weights are dequantised on the fly.
enum class ComputeMode : uint8_t { kFast, kExact };
inline constexpr int kNumComputeModes = 2;

// How keys and values are stored. kInt8: codes with a float scale for every 32
// dims of a head at one position; the last of a head may be fewer.
enum class KvType : uint8_t { kF32, kF16, kBf16, kInt8 };
inline constexpr int kNumKvTypes = 4;

// Positions of one KV block: the block of attention, of pools and of ledgers.
inline constexpr int kKvBlockPositions = 64;

enum class Isa : uint8_t { kScalar, kAvx2, kAvx512, kNeon };
inline constexpr int kNumIsas = 4;

}  // namespace millrace::kernels
