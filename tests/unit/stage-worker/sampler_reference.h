#pragma once

#include <cstdint>
#include <vector>

#include "transport/frame.h"

namespace millrace::worker {

// The sampler written from its definition in kernels/README.md with plain loops
// and a full sort; shares nothing with the one that serves but exp and log.
struct ReferenceCase {
  std::vector<float> logits;
  int64_t position = 0;  // of the token drawn
  transport::SamplingOptions options;
  int64_t prompt_tokens = 0;
  std::vector<int32_t> tokens;  // those at positions 0, 1, ...
  int32_t num_top = 0;
};

transport::Result ReferenceSample(const ReferenceCase& c);
transport::Result ReferenceScore(const std::vector<float>& logits,
                                 int32_t target, int32_t num_top);

}  // namespace millrace::worker
