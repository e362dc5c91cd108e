#include "model/chat/chat_template.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "model/chat/jinja/input_value.h"
#include "model/chat/jinja/interpreter.h"
#include "model/chat/jinja/parser.h"

namespace millrace::model {
namespace {

// Variables whose text is the model's own, not a client's.
bool IsTrusted(absl::string_view variable) {
  return variable == "bos_token" || variable == "eos_token";
}

std::vector<TextSegment> Segments(const jinja::Text& text) {
  std::vector<TextSegment> out;
  int64_t begin = 0;
  for (const jinja::Text::Run& run : text.runs()) {
    const absl::string_view bytes = text.bytes().substr(
        static_cast<size_t>(begin), static_cast<size_t>(run.end - begin));
    out.push_back({std::string(bytes), run.untrusted
                                           ? AddedTokenMode::kNone
                                           : AddedTokenMode::kParseSpecial});
    begin = run.end;
  }
  return out;
}

}  // namespace

struct ChatTemplate::Program {
  std::string object;
  std::unique_ptr<const jinja::Program> parsed;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program)
    : program_(std::move(program)) {}

ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Compile(
    absl::string_view source, absl::string_view object) {
  absl::StatusOr<std::unique_ptr<jinja::Program>> parsed = jinja::Parse(source);
  if (!parsed.ok()) {
    return InputError(object, parsed.status().message(),
                      "the chat template is not one that Jinja would take");
  }
  auto program = std::make_unique<Program>();
  program->object = std::string(object);
  program->parsed = *std::move(parsed);
  return absl::WrapUnique(new ChatTemplate(std::move(program)));
}

absl::StatusOr<std::vector<TextSegment>> ChatTemplate::Render(
    const Json& input, absl::Time now, const RenderLimits& limits) const {
  const std::string& object = program_->object;
  if (!input.is_object()) {
    return InputError(object, "the variables must be a JSON object");
  }
  const jinja::Program& program = *program_->parsed;
  jinja::Runtime runtime(limits, now);
  jinja::Interpreter interpreter(program, runtime, limits.output_bytes_max);
  absl::StatusOr<jinja::Text> text = absl::InternalError("not rendered");
  absl::Status status;
  for (size_t i = 0; i < program.symbols.size() && status.ok(); ++i) {
    const std::string& name = program.symbols[i];
    const auto* found = input.get_object().if_contains(name);
    if (found == nullptr) {
      continue;
    }
    absl::StatusOr<jinja::Value> value =
        jinja::InputValue(runtime, *found, !IsTrusted(name));
    status = value.status();
    if (status.ok()) {
      interpreter.SetVariable(static_cast<int32_t>(i), *std::move(value));
    }
  }
  if (status.ok()) {
    text = interpreter.Run();
    status = text.status();
  }
  if (status.ok()) {
    return Segments(*text);
  }
  if (absl::IsAborted(status)) {
    return InputError(object, status.message(),
                      "the model's chat template refuses this conversation");
  }
  const std::string what =
      interpreter.failed_line() == 0
          ? std::string(status.message())
          : absl::StrCat("line ", interpreter.failed_line(), ": ",
                         status.message());
  return absl::IsResourceExhausted(status)
             ? MakeError(absl::StatusCode::kResourceExhausted, object, what)
             : InputError(object, what);
}

void NormaliseMessages(Json& input) {
  auto* object = input.if_object();
  auto* messages =
      object == nullptr ? nullptr : object->if_contains("messages");
  if (messages == nullptr || !messages->is_array()) {
    return;
  }
  for (Json& message : messages->get_array()) {
    if (!message.is_object()) {
      continue;
    }
    boost::json::object kept;
    const Json* reasoning = nullptr;
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
      const Json* found = message.get_object().if_contains(name);
      if (reasoning == nullptr && found != nullptr && !found->is_null()) {
        reasoning = found;
      }
    }
    if (reasoning != nullptr) {
      kept["thinking"] = *reasoning;
    }
    for (const auto& [key, value] : message.get_object()) {
      if (!value.is_null()) {
        kept[key] = value;
      }
    }
    if (reasoning != nullptr) {
      kept["reasoning_content"] = Json(*reasoning);
    }
    message = std::move(kept);
  }
}

}  // namespace millrace::model
