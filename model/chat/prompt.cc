#include "model/chat/prompt.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"

namespace millrace::model {

void CompleteInput(absl::string_view bos_text, absl::string_view eos_text,
                   Json& input) {
  NormaliseMessages(input);
  boost::json::object* object = input.if_object();
  if (object == nullptr) {
    return;
  }
  // Inserting does nothing where the name is there.
  object->emplace("tools", nullptr);
  object->emplace("documents", nullptr);
  if (!bos_text.empty()) {
    (*object)["bos_token"] = std::string(bos_text);
  }
  if (!eos_text.empty()) {
    (*object)["eos_token"] = std::string(eos_text);
  }
}

std::string JoinSegments(absl::Span<const TextSegment> segments) {
  std::string out;
  for (const TextSegment& segment : segments) {
    absl::StrAppend(&out, segment.text);
  }
  return out;
}

absl::StatusOr<std::vector<TokenId>> BuildPrompt(
    const Tokenizer& tokenizer, const ChatTemplate& chat_template,
    const Json& input, absl::Time now, bool parse_special) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<TextSegment> segments,
                            chat_template.Render(input, now));
  if (!parse_special) {
    return tokenizer.EncodeSegments(segments);
  }
  return tokenizer.Encode(JoinSegments(segments), AddedTokenMode::kParseSpecial,
                          /*add_special=*/false);
}

absl::Status NoChatTemplate(absl::string_view object) {
  return InputError(object, "has no chat template",
                    "use --raw to send the prompt as it is");
}

}  // namespace millrace::model
