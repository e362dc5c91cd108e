#pragma once

#include "kernels/quant/weight_format.h"
#include "tests/support/tiny_models.h"

namespace millrace::testing {

// The smallest model that uses a format everywhere it may occur, and that two
// stages can share.
inline TinyModel SmallModel(TinyFamily family, kernels::WeightFormat format) {
  TinyModel model = ForFormat(family, format);
  model.num_layers = 2;
  model.vocab_size = 101;
  model.context_length = 256;
  model.tokenizer = false;
  model.num_experts = 4;
  if (format == kernels::WeightFormat::kFp8) {
    // More than one block of 128 each way, the last one partial.
    model.hidden_size = 160;
    model.intermediate_size = 136;
    model.expert_intermediate_size = 132;
  }
  return model;
}

}  // namespace millrace::testing
