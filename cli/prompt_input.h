#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "cli/model_host.h"
#include "model/chat/chat_template.h"

namespace millrace::cli {

struct ChatMessage {
  std::string role;
  std::string text;
};

// Renders; a template that passes a limit is an InputError as well.
absl::StatusOr<std::vector<model::TextSegment>> RenderTemplate(
    const model::ChatTemplate& chat_template, const Json& input,
    absl::Time now);

// Ids of a conversation through the model's chat template, an answer of the
// assistant to come. Text of messages can never become a turn marker or another
// added token unless `parse_special`. InputError when the model has no
// tokenizer or template.
absl::StatusOr<std::vector<int32_t>> ChatPrompt(
    const ModelHost& host, const std::vector<ChatMessage>& messages,
    bool parse_special);

}  // namespace millrace::cli
