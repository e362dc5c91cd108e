#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "coordinator/api/generation_fields.h"
#include "model/chat/chat_template.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::coordinator {

inline constexpr int64_t kMessagesMax = 10000;
inline constexpr int64_t kTopLogprobsMax = 20;

// A chat request, validated; nothing about its length is known yet.
struct ChatRequest {
  GenerationFields fields;
  bool want_logprobs = false;
  int32_t top_logprobs = 0;
  // What the template reads: messages with text as content, and further
  // variables.
  Json input;
  // Render the last message, an assistant's, as one to be continued.
  bool continue_final = false;
};

// ParamError names the first bad field. Messages: roles system, developer
// (counts as system), user, assistant, tool; content a string or a list of text
// parts, which are joined by line feeds.
absl::StatusOr<ChatRequest> ReadChatRequest(const Json& body,
                                            const ModelLimits& limits);

// The same for messages alone (a path that only counts tokens, the `chat`
// command): fills `request.input`.
absl::Status ReadMessages(const FieldReader& reader, ChatRequest& request);

// How prompts of a chat are made. Borrows; immutable; any thread.
struct ChatPromptMaker {
  const model::Tokenizer* tokenizer = nullptr;
  const model::ChatTemplate* chat_template = nullptr;
  std::string bos_text;
  std::string eos_text;
  // Added tokens in messages count as such: the caller's text is trusted.
  bool parse_special = false;

  // Token ids of the rendered messages. ParamError when the template refuses
  // the messages (with its own words), FailedPrecondition-like errors where
  // the model has no tokenizer or template.
  absl::StatusOr<std::vector<int32_t>> Make(const ChatRequest& request,
                                            absl::Time now) const;
};

}  // namespace millrace::coordinator
