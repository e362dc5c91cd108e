#pragma once

#include <cstdint>
#include <string>

#include "model/checkpoint/decoder_config.h"

namespace millrace::model {

enum class GlobalPart { kEmbedding, kFinalNorm, kHead };

enum class LayerPart {
  kAttentionNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kQueryNorm,
  kKeyNorm,
  kFfnNorm,
  kGate,
  kUp,
  kDown,
  kRouter,
  // All experts of a layer in one tensor. Hugging Face files have no fused
  // gate and up alone; those names are never found there.
  kFusedGate,
  kFusedUp,
  kFusedGateUp,
  kFusedDown,
  // The same as MLX names them; not in GGUF files.
  kSwitchGate,
  kSwitchUp,
  kSwitchDown,
};

// Names of tensors in Hugging Face and GGUF checkpoints.
std::string TensorName(NameStyle style, GlobalPart part);
std::string TensorName(NameStyle style, LayerPart part, int64_t layer);
// NAME.bias beside NAME.weight.
std::string BiasName(NameStyle style, LayerPart part, int64_t layer);
// Hugging Face only: one tensor per expert. `part` is kGate, kUp or kDown.
std::string ExpertName(LayerPart part, int64_t layer, int64_t expert);

}  // namespace millrace::model
