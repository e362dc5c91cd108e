#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::kernels {

// How the elements of a weight matrix are stored in a checkpoint. Byte layouts:
// kernels/README.md.
enum class WeightFormat : uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};
inline constexpr int kNumWeightFormats = 11;

struct WeightFormatTraits {
  const char* name;  // as shown to people, lower case
  int32_t block_elements;
  int32_t block_bytes;
};

inline constexpr std::array<WeightFormatTraits, kNumWeightFormats>
    kWeightFormatTraits = {{
        {"f32", 1, 4},
        {"f16", 1, 2},
        {"bf16", 1, 2},
        {"q4_0", 32, 18},
        {"q4_1", 32, 20},
        {"q5_0", 32, 22},
        {"q5_1", 32, 24},
        {"q8_0", 32, 34},
        {"q4_k", 256, 144},
        {"q5_k", 256, 176},
        {"q6_k", 256, 210},
    }};

constexpr const WeightFormatTraits& TraitsOf(WeightFormat format) {
  return kWeightFormatTraits[static_cast<size_t>(format)];
}

// Bytes of one stored row of `cols` elements; cols must be a multiple of the
// block.
constexpr int64_t StoredRowBytes(WeightFormat format, int64_t cols) {
  const WeightFormatTraits& traits = TraitsOf(format);
  return cols / traits.block_elements * traits.block_bytes;
}

}  // namespace millrace::kernels
