#pragma once

#include "absl/status/statusor.h"
#include "model/checkpoint/decoder_config.h"
#include "model/checkpoint/gguf_file.h"
#include "model/checkpoint/stored_tensors.h"

namespace millrace::model {

// Sizes and switches from GGUF keys. Architectures: llama, smollm3, qwen2,
// qwen3, qwen3moe; others are refused by name. The size of the vocabulary is
// that of the embedding.
absl::StatusOr<DecoderConfig> ReadGgufConfig(const GgufFile& file,
                                             const StoredTensors& tensors);

}  // namespace millrace::model
