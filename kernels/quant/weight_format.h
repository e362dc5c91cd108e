#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::kernels {

// How the elements of a weight matrix are stored. Formats of GGUF files and
// plain elements lie in a checkpoint like this. The others are parts of several
// tensors there (codes, scales, zero points or biases): the reader composes
// stored rows out of them. Byte layouts: kernels/README.md, stored blocks.
enum class WeightFormat : uint8_t {
  kF32,
  kF16,
  kBf16,
  kFp8,  // E4M3, scales of 128 x 128
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ2_K,
  kQ3_K,
  kIq4Nl,
  kMxfp4,
  // Affine: 16-bit scales and offsets, bf16 or (F16) half precision as in the
  // checkpoint; neither holds the numbers of the other.
  kInt4,  // symmetric
  kInt4F16,
  kInt4Zero,  // with zero points
  kInt4ZeroF16,
  kMlx4,
  kMlx4F16,
  kMlx8,
  kMlx8F16,
};
inline constexpr int kNumWeightFormats = 24;

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
        {"fp8", 1, 1},  // and scales in front: StoredRowBytes()
        {"q4_0", 32, 18},
        {"q4_1", 32, 20},
        {"q5_0", 32, 22},
        {"q5_1", 32, 24},
        {"q8_0", 32, 34},
        {"q4_k", 256, 144},
        {"q5_k", 256, 176},
        {"q6_k", 256, 210},
        {"q2_k", 256, 84},
        {"q3_k", 256, 110},
        {"iq4_nl", 32, 18},
        {"mxfp4", 32, 17},
        {"int4", 32, 18},
        {"int4_f16", 32, 18},
        {"int4_zero", 32, 20},
        {"int4_zero_f16", 32, 20},
        {"mlx4", 32, 20},
        {"mlx4_f16", 32, 20},
        {"mlx8", 32, 36},
        {"mlx8_f16", 32, 36},
    }};

constexpr const WeightFormatTraits& TraitsOf(WeightFormat format) {
  return kWeightFormatTraits[static_cast<size_t>(format)];
}

// Columns that share one scale of FP8 weights; the last ones may be fewer.
inline constexpr int64_t kFp8ScaleCols = 128;

// Bytes of one stored row of `cols` elements; cols must be a multiple of the
// block.
constexpr int64_t StoredRowBytes(WeightFormat format, int64_t cols) {
  const WeightFormatTraits& traits = TraitsOf(format);
  const int64_t bytes = cols / traits.block_elements * traits.block_bytes;
  return format == WeightFormat::kFp8
             ? bytes + (cols + kFp8ScaleCols - 1) / kFp8ScaleCols * 4
             : bytes;
}

}  // namespace millrace::kernels
