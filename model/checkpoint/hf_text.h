#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "model/checkpoint/checkpoint.h"

namespace millrace::model {

// What a Hugging Face folder says beside sizes and weights.
struct HfText {
  std::optional<std::string> tokenizer_json_path;
  std::optional<std::string> chat_template;
  std::optional<GenerationDefaults> generation_defaults;
  std::string bos_token_text;
  std::string eos_token_text;
  std::vector<int32_t> stop_tokens;  // ascending, each once
  std::optional<int32_t> bos_token;
};

// Reads generation_config.json, tokenizer_config.json, chat_template.jinja and
// the added tokens of tokenizer.json where they are there. `config` is
// config.json; token ids must be below `vocab_size`. InputError naming file and
// key; a tokenizer.json that cannot be read is left to the tokenizer to report.
absl::StatusOr<HfText> ReadHfText(const std::string& folder,
                                  const JsonObject& config, int64_t vocab_size);

}  // namespace millrace::model
