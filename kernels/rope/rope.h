#pragma once

#include <cstdint>

namespace millrace::kernels {

// Rotates the first `rotary_dims` elements of every head of one row in place.
// Half-split pairs element i with i + rotary_dims / 2, interleaved 2i with
// 2i + 1. cos and sin: [rotary_dims / 2] of the row's position.
struct RopeArgs {
  float* x;  // [num_heads, head_dim] of one row
  int64_t num_heads;
  int64_t head_dim;
  int64_t rotary_dims;
  bool interleaved;
  const float* cos;
  const float* sin;
};
using RopeFn = void (*)(const RopeArgs& args);

// How the base frequencies f_i = theta^(-2i / rotary_dims) are changed.
enum class RopeScaling : uint8_t {
  kNone,
  kLinear,
  kDynamic,  // base grows with the prompt's length (NTK)
  kLlama3,
  kYarn,
};

struct RopeParams {
  int64_t rotary_dims = 0;
  double theta = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;
  double low_freq_factor = 1;   // llama3
  double high_freq_factor = 4;  // llama3
  double original_context =
      0;                  // llama3, yarn; dynamic: max_position_embeddings
  double beta_fast = 32;  // yarn
  double beta_slow = 1;   // yarn
  bool truncate = true;   // yarn
  double attention_factor = 1;  // yarn: A, already resolved by the reader
  // Divisors per frequency (GGUF rope_freqs.weight) or null: [rotary_dims / 2].
  const float* divisors = nullptr;
};

// out[i] = f_i after scaling, i < rotary_dims / 2, in double with our own ln
// and exp. `prompt_tokens` matters for kDynamic only.
void RopeFrequencies(const RopeParams& params, int64_t prompt_tokens,
                     double* out);

// cos[i], sin[i] = A * cos / sin of position * frequencies[i], rounded to f32.
void RopeTableRow(const double* frequencies, int64_t num_frequencies,
                  double attention_factor, int64_t position, float* cos,
                  float* sin);

}  // namespace millrace::kernels
