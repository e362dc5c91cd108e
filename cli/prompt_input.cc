#include "cli/prompt_input.h"

#include "absl/time/clock.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "model/chat/chat_template.h"

namespace millrace::cli {

absl::StatusOr<std::vector<int32_t>> ChatPrompt(
    const ModelHost& host, const std::vector<ChatMessage>& messages,
    bool parse_special) {
  MILLRACE_ASSIGN_OR_RETURN(const model::Tokenizer* tokenizer,
                            NeedTokenizer(host, "a text prompt"));
  if (host.chat_template == nullptr) {
    return InputError(host.checkpoint->files().front(), "has no chat template",
                      "use --raw to give the text as it is");
  }
  boost::json::array list;
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.text}});
  }
  boost::json::object input;
  input["messages"] = list;
  input["tools"] = nullptr;
  input["documents"] = nullptr;
  input["add_generation_prompt"] = true;
  input["bos_token"] = host.checkpoint->bos_token_text();
  input["eos_token"] = host.checkpoint->eos_token_text();
  MILLRACE_ASSIGN_OR_RETURN(std::vector<model::TextSegment> segments,
                            host.chat_template->Render(input, absl::Now()));
  if (parse_special) {
    for (model::TextSegment& segment : segments) {
      segment.mode = model::AddedTokenMode::kParseSpecial;
    }
  }
  return tokenizer->EncodeSegments(segments);
}

}  // namespace millrace::cli
