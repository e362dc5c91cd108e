#include <cmath>

#include "kernels/ops_scalar.h"

namespace millrace::kernels::scalar {

void Rope(const RopeArgs& args) {
  const int64_t half = args.rotary_dims / 2;
  for (int64_t head = 0; head < args.num_heads; ++head) {
    float* x = args.x + head * args.head_dim;
    for (int64_t i = 0; i < half; ++i) {
      float& first = args.interleaved ? x[2 * i] : x[i];
      float& second = args.interleaved ? x[2 * i + 1] : x[i + half];
      const float a = first;
      const float b = second;
      first = std::fma(a, args.cos[i], -(b * args.sin[i]));
      second = std::fma(a, args.sin[i], b * args.cos[i]);
    }
  }
}

}  // namespace millrace::kernels::scalar
