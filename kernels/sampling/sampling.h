#pragma once

#include <cstdint>

namespace millrace::kernels {

// Philox4x32-10: four 32-bit words from a 64-bit key and a 128-bit counter.
struct PhiloxBlock {
  uint32_t words[4];
};
PhiloxBlock Philox4x32(uint64_t key, PhiloxBlock counter);

// Uniform in [0, 1) for the token drawn at `position` of choice `choice`:
// README.md, "Sampling".
double UniformDraw(uint64_t seed, uint64_t position, uint32_t choice);

// Natural logarithm of a normal x > 0 by our own polynomial.
float LogF32(float x);

// Ids are summed in blocks of this many.
inline constexpr int64_t kSamplingBlock = 1024;

// Passes over one row of n logits that are worth a vector version.
struct SamplingKernels {
  // Largest element, a zero as +0; NaN when there is one in the row.
  float (*row_max)(const float* x, int64_t n) = nullptr;
  // out[i] = exp(x[i] - max); blocks of kSamplingBlock summed by the reduction
  // of README.md into block_sums [ceil(n / 1024)] (f32). out may be null.
  void (*exp_block_sums)(const float* x, float max, int64_t n, float* out,
                         float* block_sums) = nullptr;
  // out[i] = x[i] / divisor; out may equal x.
  void (*divide)(const float* x, float divisor, int64_t n,
                 float* out) = nullptr;
};

}  // namespace millrace::kernels
