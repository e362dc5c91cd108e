#pragma once

#include "absl/status/statusor.h"
#include "planner/families/config_reader.h"
#include "planner/model_sheet.h"

namespace millrace::planner {

// One family each: the weights, KV, state and vectors across cuts that the
// sizes in a config.json mean. InputError naming file and key. For planning
// alone: what a layer computes is not looked at.

// Gemma 2, 3 and 4: windows; in 4 also KV that layers share, embeddings per
// layer, and experts beside a dense feed-forward.
absl::StatusOr<ModelSheet> ReadGemma(ConfigReader& config);
absl::StatusOr<ModelSheet> ReadGemma4(ConfigReader& config);
absl::StatusOr<ModelSheet> ReadGptOss(ConfigReader& config);
// DeepSeek V3 and Kimi K2: latent attention, experts.
absl::StatusOr<ModelSheet> ReadDeepseekV3(ConfigReader& config);
// Kimi Linear, and Kimi K3 with latent experts and attention residuals.
absl::StatusOr<ModelSheet> ReadKimiLinear(ConfigReader& config);
// LFM2 and LFM2-MoE: short convolutions.
absl::StatusOr<ModelSheet> ReadLfm2(ConfigReader& config);
// Qwen3-Next and Qwen3.5: gated delta networks.
absl::StatusOr<ModelSheet> ReadQwen3Next(ConfigReader& config);

}  // namespace millrace::planner
