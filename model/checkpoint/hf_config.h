#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "model/checkpoint/decoder_config.h"

namespace millrace::model {

// Sizes and switches from config.json. Families: llama, mistral, smollm3,
// qwen2, qwen3, qwen3_moe; others are refused by name. `path` is that of the
// file. How weights are quantised: hf_quantisation.h.
absl::StatusOr<DecoderConfig> ReadHfConfig(const JsonObject& config,
                                           const std::string& path);

// Names of these families for `model_type`.
std::vector<std::string> HfFamilies();

// The weight format that `torch_dtype` (or `dtype`) names, BF16 where it names
// none.
absl::StatusOr<kernels::WeightFormat> ReadHfWeightFormat(
    const JsonObject& config);

}  // namespace millrace::model
