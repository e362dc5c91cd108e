// Stands in for model/chat in a tree that lacks it: always the turns of the
// stub's template.
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/string.hpp"
#include "model/chat/chat_template.h"

namespace millrace::model {

struct ChatTemplate::Program {};

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program)
    : program_(std::move(program)) {}
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Compile(
    absl::string_view /*source*/, absl::string_view /*object*/) {
  return std::unique_ptr<ChatTemplate>(
      new ChatTemplate(std::make_unique<Program>()));
}

absl::StatusOr<std::vector<TextSegment>> ChatTemplate::Render(
    const Json& input, absl::Time /*now*/,
    const RenderLimits& /*limits*/) const {
  std::vector<TextSegment> out;
  const auto trusted = [&](const std::string& text) {
    out.push_back({text, AddedTokenMode::kParseSpecial});
  };
  const auto untrusted = [&](const Json& text) {
    out.push_back({std::string(text.get_string()), AddedTokenMode::kNone});
  };
  for (const Json& message : input.at("messages").get_array()) {
    trusted("<|im_start|>");
    untrusted(message.at("role"));
    trusted("\n");
    untrusted(message.at("content"));
    trusted("<|im_end|>\n");
  }
  if (input.at("add_generation_prompt").get_bool()) {
    trusted("<|im_start|>assistant\n");
  }
  return out;
}

void NormaliseMessages(Json& /*input*/) {}

}  // namespace millrace::model
