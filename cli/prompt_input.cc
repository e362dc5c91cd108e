#include "cli/prompt_input.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "model/chat/prompt.h"

namespace millrace::cli {

absl::StatusOr<std::vector<model::TextSegment>> RenderTemplate(
    const model::ChatTemplate& chat_template, const Json& input,
    absl::Time now) {
  absl::StatusOr<std::vector<model::TextSegment>> segments =
      chat_template.Render(input, now);
  if (absl::IsResourceExhausted(segments.status())) {
    return InputError(ObjectOf(segments.status()), WhatOf(segments.status()),
                      "the chat template is not one that can be used");
  }
  return segments;
}

absl::StatusOr<std::vector<int32_t>> ChatPrompt(
    const ModelHost& host, const std::vector<ChatMessage>& messages,
    bool parse_special) {
  MILLRACE_ASSIGN_OR_RETURN(const model::Tokenizer* tokenizer,
                            NeedTokenizer(host, "a text prompt"));
  if (host.chat_template == nullptr) {
    return model::NoChatTemplate(host.checkpoint->files().front());
  }
  boost::json::array list;
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.text}});
  }
  Json input = boost::json::object{{"messages", std::move(list)},
                                   {"add_generation_prompt", true}};
  model::CompleteInput(host.checkpoint->bos_token_text(),
                       host.checkpoint->eos_token_text(), input);
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<model::TextSegment> segments,
      RenderTemplate(*host.chat_template, input, absl::Now()));
  if (parse_special) {
    return tokenizer->Encode(model::JoinSegments(segments),
                             model::AddedTokenMode::kParseSpecial,
                             /*add_special=*/false);
  }
  return tokenizer->EncodeSegments(segments);
}

}  // namespace millrace::cli
