#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "coordinator/api/generation_fields.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::coordinator {

// Text as the caller wrote it, or token ids below vocab_size; never empty ids.
using TextPrompt = std::variant<std::string, std::vector<int32_t>>;

// A text completion request, validated.
struct CompletionRequest {
  GenerationFields fields;
  std::vector<TextPrompt> prompts;  // at least one
  bool echo = false;
  bool want_logprobs = false;
  int32_t top_logprobs = 0;
};

absl::StatusOr<CompletionRequest> ReadCompletionRequest(
    const Json& body, const ModelLimits& limits);

// Ids of a prompt: text with special tokens parsed and the tokenizer's own
// prefix in front. ParamError `prompt` for text without a tokenizer (null) and
// for text that has no tokens.
absl::StatusOr<std::vector<int32_t>> PromptIds(
    const TextPrompt& prompt, const model::Tokenizer* tokenizer);

}  // namespace millrace::coordinator
