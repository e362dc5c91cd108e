#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/answer.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/model_host.h"
#include "cli/prompt_input.h"

namespace millrace::cli {
namespace {

constexpr char kHelp[] =
    "  /help         this list\n"
    "  /save FILE    keep the conversation in a file\n"
    "  /load FILE    go on with one from a file\n"
    "  /clear        forget the conversation\n"
    "  /system TEXT  start anew with this system message\n"
    "  /quit         end (Ctrl-D as well; Ctrl-C stops an answer)\n";

class ChatCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "chat"; }
  [[nodiscard]] const char* summary() const override {
    return "Talk to a model in the terminal";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace chat model.gguf --session talk.json";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  enum class Next { kGoOn, kEnd };

  absl::Status Prepare(ModelHost& host, Console& console);
  // A line that begins with a slash.
  absl::StatusOr<Next> Obey(const std::string& line, Console& console);
  // Shows the answer to the last message, an interrupted one as far as it came.
  absl::StatusOr<Answer> AnswerUser(ModelHost& host, Console& console) const;
  // Adds the user's line and its answer to the conversation. A line that fails,
  // or is interrupted before anything was said, is dropped.
  void Reply(const std::string& line, ModelHost& host, Console& console);
  // In the file of --session, where one is given.
  [[nodiscard]] absl::Status KeepSession() const;
  // Until the input ends, /quit, SIGTERM, or nobody reads the answers.
  void Converse(ModelHost& host, Console& console);
  static void Show(Console& console, const ModelHost& host,
                   const Answer& answer);

  std::string model_;
  std::string session_;
  bool parse_special_ = false;
  ComputeFlags compute_;
  SamplingFlags sampling_flags_;
  SamplingChoice sampling_;
  std::vector<ChatMessage> messages_;
};

void ChatCommand::Define(CLI::App& app) {
  app.add_option("MODEL", model_, "Model directory or GGUF file")->required();
  app.add_option("--session", session_,
                 "Go on with the conversation in this file and keep it there");
  app.add_flag("--parse-special", parse_special_,
               "Let messages hold turn markers and other added tokens");
  compute_.Define(app);
  sampling_flags_.Define(app);
}

absl::StatusOr<ChatCommand::Next> ChatCommand::Obey(const std::string& line,
                                                    Console& console) {
  const size_t space = line.find(' ');
  const absl::string_view command = absl::string_view(line).substr(0, space);
  const std::string argument(
      space == std::string::npos
          ? ""
          : absl::StripAsciiWhitespace(
                absl::string_view(line).substr(space + 1)));
  if (command == "/quit" || command == "/exit") {
    return Next::kEnd;
  }
  if (command == "/help") {
    console.Note(absl::StripSuffix(kHelp, "\n"));
  } else if (command == "/clear") {
    messages_.clear();
  } else if (command == "/system") {
    messages_ = {{"system", argument}};
  } else if (command == "/save" || command == "/load") {
    if (argument.empty()) {
      return UsageError(command, "needs a file", "as /save talk.json");
    }
    if (command == "/save") {
      MILLRACE_RETURN_IF_ERROR(WriteSession(argument, messages_));
      console.Note(absl::StrCat("saved to ", argument));
    } else {
      MILLRACE_ASSIGN_OR_RETURN(messages_, ReadSession(argument));
      console.Note(
          absl::StrCat(Counted(std::ssize(messages_), "message"), " loaded"));
    }
  } else if (command == "/image") {
    return UsageError("/image", "is not in this version of millrace");
  } else {
    return UsageError(Printable(command), "is no command", "see /help");
  }
  return Next::kGoOn;
}

void ChatCommand::Show(Console& console, const ModelHost& host,
                       const Answer& answer) {
  if (!console.json()) {
    console.Out("\n\n");
    return;
  }
  boost::json::object out;
  out["event"] = "answer";
  out["text"] = answer.text;
  out["tokens"] =
      boost::json::array(answer.tokens.begin(), answer.tokens.end());
  out["finish_reason"] = answer.finish_reason;
  out["stages"] = host.pipeline->config().stages.size();
  console.OutJson(out);
}

absl::StatusOr<Answer> ChatCommand::AnswerUser(ModelHost& host,
                                               Console& console) const {
  AnswerRequest request;
  request.keep_interrupted = true;
  request.sampling = sampling_;
  MILLRACE_ASSIGN_OR_RETURN(request.prompt,
                            ChatPrompt(host, messages_, parse_special_));
  MILLRACE_ASSIGN_OR_RETURN(
      request.max_tokens,
      TokensFor(host, static_cast<int64_t>(request.prompt.size()), sampling_));
  request.seed = sampling_.seed.value_or(
      static_cast<uint64_t>(absl::GetCurrentTimeNanos()));
  if (!console.json()) {
    request.on_text = [&](const std::string& text) {
      console.Out(text);
      return console.OutStatus();
    };
  }
  MILLRACE_ASSIGN_OR_RETURN(Answer answer, MakeAnswer(host, request));
  Show(console, host, answer);
  return answer;
}

absl::Status ChatCommand::Prepare(ModelHost& host, Console& console) {
  MILLRACE_RETURN_IF_ERROR(NeedTokenizer(host, "chat").status());
  if (host.chat_template == nullptr) {
    return InputError(host.checkpoint->files().front(), "has no chat template",
                      "use `millrace run --raw` with this model");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      sampling_,
      Validate(sampling_flags_, host.checkpoint->generation_defaults()));
  if (!session_.empty() && FileExists(session_)) {
    MILLRACE_ASSIGN_OR_RETURN(messages_, ReadSession(session_));
  }
  // A place that cannot be written shows now, not after an hour of talking.
  MILLRACE_RETURN_IF_ERROR(KeepSession());
  MILLRACE_RETURN_IF_ERROR(StartPipeline(
      host, std::max<int64_t>(1, host.compute.concurrency), nullptr, console));
  console.Note("Type a message, /help for commands, Ctrl-D to end.");
  return absl::OkStatus();
}

absl::Status ChatCommand::Run(Console& console) {
  SetLogLevel(LogLevel::kWarning);
  MILLRACE_ASSIGN_OR_RETURN(ComputeOptions compute, Validate(compute_, false));
  MILLRACE_ASSIGN_OR_RETURN(ModelHost host,
                            OpenModel(model_, std::move(compute)));
  MILLRACE_RETURN_IF_ERROR(Prepare(host, console));
  Converse(host, console);
  MILLRACE_RETURN_IF_ERROR(KeepSession());
  return Interrupts() > 0 ? absl::CancelledError("interrupted")
                          : absl::OkStatus();
}

void ChatCommand::Converse(ModelHost& host, Console& console) {
  if (Interrupts() > 0) {
    return;  // it came while the model was loaded
  }
  LineReader lines;
  while (!TerminationRequested() && console.OutStatus().ok()) {
    const std::optional<std::string> line = lines.Read("> ");
    if (!line.has_value()) {
      break;
    }
    if (absl::StripAsciiWhitespace(*line).empty()) {
      continue;
    }
    if (line->front() != '/') {
      Reply(*line, host, console);
    } else if (const absl::StatusOr<Next> next = Obey(*line, console);
               !next.ok()) {
      console.Error(next.status());
    } else if (*next == Next::kEnd) {
      break;
    }
    if (lines.terminal()) {
      ForgetInterrupts();  // one that came as the answer ended
    }
  }
}

absl::Status ChatCommand::KeepSession() const {
  return session_.empty() ? absl::OkStatus()
                          : WriteSession(session_, messages_);
}

void ChatCommand::Reply(const std::string& line, ModelHost& host,
                        Console& console) {
  messages_.push_back({"user", line});
  const absl::StatusOr<Answer> answer = AnswerUser(host, console);
  if (!answer.ok()) {
    messages_.pop_back();
    if (console.OutStatus().ok()) {
      console.Error(answer.status());
    }
    return;
  }
  if (answer->finish_reason == kInterrupted) {
    ForgetInterrupts();
    console.Note("stopped");
    if (answer->text.empty()) {
      messages_.pop_back();
      return;
    }
  }
  messages_.push_back({"assistant", answer->text});
  // After each answer: a terminal that is closed ends the program at once.
  if (const absl::Status kept = KeepSession(); !kept.ok()) {
    console.Error(kept);
  }
}

}  // namespace

std::unique_ptr<Command> MakeChatCommand() {
  return std::make_unique<ChatCommand>();
}

}  // namespace millrace::cli
