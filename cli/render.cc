// millrace render: a chat template with messages, as the model gets to see it.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "cli/batch_lines.h"
#include "cli/commands.h"
#include "cli/model_host.h"
#include "cli/prompt_input.h"
#include "model/chat/chat_template.h"
#include "model/chat/prompt.h"
#include "model/checkpoint/checkpoint.h"

namespace millrace::cli {
namespace {

using model::ChatTemplate;

constexpr int64_t kTemplateBytesMax = int64_t{4} << 20;
constexpr int64_t kInputBytesMax = int64_t{64} << 20;

absl::StatusOr<absl::Time> ParseNow(const std::string& text) {
  if (text.empty()) {
    return SystemClock().Now();
  }
  absl::CivilSecond second;
  if (!absl::ParseCivilTime(text, &second)) {
    return UsageError("--now",
                      absl::StrCat("'", Printable(text), "' is no local time"),
                      "write it like 2026-03-04T05:06:07");
  }
  return absl::FromCivil(second, absl::LocalTimeZone());
}

absl::StatusOr<std::string> Render(absl::string_view source,
                                   absl::string_view object, const Json& input,
                                   absl::Time now) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ChatTemplate> chat_template,
                            ChatTemplate::Compile(source, object));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<model::TextSegment> segments,
                            RenderTemplate(*chat_template, input, now));
  return model::JoinSegments(segments);
}

absl::StatusOr<boost::json::object> AnswerLine(absl::string_view line,
                                               absl::string_view where,
                                               absl::Time now) {
  MILLRACE_ASSIGN_OR_RETURN(Json value, ParseJson(line, where));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject request,
                            JsonObject::From(value, where));
  MILLRACE_ASSIGN_OR_RETURN(const std::string source,
                            request.String("template"));
  MILLRACE_ASSIGN_OR_RETURN(const bool normalize,
                            request.BoolOr("normalize", false));
  if (request.Find("input") == nullptr) {
    return request.ErrorAt("input", "must be an object");
  }
  Json input = *request.Find("input");
  if (normalize) {
    model::NormaliseMessages(input);
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::string prompt,
                            Render(source, where, input, now));
  return boost::json::object{{"prompt", prompt}};
}

class RenderCommand final : public Command {
 public:
  const char* name() const override { return "render"; }
  const char* summary() const override {
    return "Show the prompt that a chat template makes of messages";
  }
  const char* example() const override {
    return "millrace render model.gguf --input conversation.json";
  }

  void Define(CLI::App& app) override {
    app.add_option("MODEL", model_, "Model whose chat template is used");
    app.add_option("--template", template_, "File of a Jinja chat template");
    app.add_option("--input", input_,
                   "JSON file: messages, tools, add_generation_prompt and "
                   "further variables");
    app.add_option("--batch", batch_,
                   "File of JSON lines {template, input, normalize}; one "
                   "answer a line");
    app.add_option("--now", now_,
                   "Local time that templates see, like 2026-03-04T05:06:07");
  }

  absl::Status Run(Console& console) override {
    MILLRACE_ASSIGN_OR_RETURN(const absl::Time now, ParseNow(now_));
    const int sources = static_cast<int>(!model_.empty()) +
                        static_cast<int>(!template_.empty()) +
                        static_cast<int>(!batch_.empty());
    if (sources != 1) {
      return UsageError("render",
                        "needs exactly one of MODEL, --template and --batch",
                        "see millrace render --help");
    }
    if (!batch_.empty()) {
      return AnswerLines(
          batch_,
          [&](absl::string_view line, const std::string& where) {
            return AnswerLine(line, where, now);
          },
          console);
    }
    if (input_.empty()) {
      return UsageError("--input", "is missing",
                        "give a JSON file with the messages");
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                              ReadFile(input_, kInputBytesMax));
    MILLRACE_ASSIGN_OR_RETURN(Json input, ParseJson(text, input_));
    if (!input.is_object()) {
      return InputError(input_, "must be a JSON object");
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::string prompt,
                              RenderOne(std::move(input), now));
    if (console.json()) {
      boost::json::object out;
      out["prompt"] = prompt;
      console.OutJson(out);
    } else {
      console.Out(prompt);
    }
    return absl::OkStatus();
  }

 private:
  [[nodiscard]] absl::StatusOr<std::string> RenderOne(Json input,
                                                      absl::Time now) const {
    if (!template_.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(const std::string source,
                                ReadFile(template_, kTemplateBytesMax));
      model::CompleteInput("", "", input);
      return Render(source, template_, input, now);
    }
    MILLRACE_ASSIGN_OR_RETURN(
        const std::unique_ptr<model::Checkpoint> checkpoint,
        OpenCheckpoint(model_));
    if (checkpoint->chat_template() == nullptr) {
      return InputError(model_, "has no chat template",
                        "give one with --template FILE");
    }
    model::CompleteInput(checkpoint->bos_token_text(),
                         checkpoint->eos_token_text(), input);
    return Render(*checkpoint->chat_template(), model_, input, now);
  }

  std::string model_;
  std::string template_;
  std::string input_;
  std::string batch_;
  std::string now_;
};

}  // namespace

std::unique_ptr<Command> MakeRenderCommand() {
  return std::make_unique<RenderCommand>();
}

}  // namespace millrace::cli
