#include "cli/prompt_input.h"

#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "model/chat/prompt.h"

namespace millrace::cli {

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
  return model::BuildPrompt(*tokenizer, *host.chat_template, input, absl::Now(),
                            parse_special);
}

}  // namespace millrace::cli
