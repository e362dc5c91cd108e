#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/model_host.h"
#include "cli/prompt_input.h"
#include "cli/token_input.h"

namespace millrace::cli {
namespace {

class RunCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "run"; }
  [[nodiscard]] const char* summary() const override {
    return "Answer one prompt";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace run model.gguf --prompt \"Why is the sky blue?\"";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  [[nodiscard]] absl::Status CheckPromptFlags() const;
  absl::StatusOr<std::vector<int32_t>> ReadPrompt(const ModelHost& host) const;
  void Report(Console& console, const ModelHost& host,
              const std::vector<int32_t>& prompt, const Answer& answer) const;

  std::string model_;
  std::string prompt_;
  std::string prompt_file_;
  std::optional<std::string> tokens_;
  bool raw_ = false;
  bool parse_special_ = false;
  CLI::Option* prompt_option_ = nullptr;
  ComputeFlags compute_;
  SamplingFlags sampling_;
};

void RunCommand::Define(CLI::App& app) {
  app.add_option("MODEL", model_, "Model directory or GGUF file")->required();
  prompt_option_ = app.add_option("--prompt", prompt_, "The prompt's text");
  app.add_option("--prompt-file", prompt_file_, "File that holds it");
  app.add_option("--tokens", tokens_, "Token ids taken as they are, as 1,2,3");
  app.add_flag("--raw", raw_, "No chat template around the text");
  app.add_flag("--parse-special", parse_special_,
               "Let the text hold turn markers and other added tokens");
  compute_.Define(app);
  sampling_.Define(app);
}

absl::Status RunCommand::CheckPromptFlags() const {
  const int sources = (prompt_option_->count() > 0 ? 1 : 0) +
                      (prompt_file_.empty() ? 0 : 1) +
                      (tokens_.has_value() ? 1 : 0);
  if (sources > 1) {
    return UsageError("run", "was given more than one prompt",
                      "give one of --prompt, --prompt-file, --tokens");
  }
  if (tokens_.has_value() && (raw_ || parse_special_)) {
    return UsageError(raw_ ? "--raw" : "--parse-special",
                      "goes without --tokens, which are taken as they are",
                      "leave it out");
  }
  if (raw_ && parse_special_) {
    return UsageError("--parse-special",
                      "goes without --raw, with which the text may hold "
                      "added tokens anyway",
                      "leave it out");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> RunCommand::ReadPrompt(
    const ModelHost& host) const {
  if (tokens_.has_value()) {
    return ParseTokenIds(*tokens_, "--tokens",
                         host.checkpoint->spec().vocab_size);
  }
  std::string text = prompt_;
  if (!prompt_file_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(text, ReadFile(prompt_file_, kTextBytesMax));
  } else if (prompt_option_->count() == 0) {
    MILLRACE_ASSIGN_OR_RETURN(text, ReadStdin(kTextBytesMax));
  }
  if (raw_) {
    MILLRACE_ASSIGN_OR_RETURN(const model::Tokenizer* tokenizer,
                              NeedTokenizer(host, "a text prompt"));
    return tokenizer->Encode(text, model::AddedTokenMode::kParseSpecial, true);
  }
  return ChatPrompt(host, {{"user", text}}, parse_special_);
}

void RunCommand::Report(Console& console, const ModelHost& host,
                        const std::vector<int32_t>& prompt,
                        const Answer& answer) const {
  const auto rate = [](size_t tokens, absl::Duration time) {
    const double seconds = absl::ToDoubleSeconds(time);
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  };
  // The first token comes with the prompt.
  const size_t decoded = answer.tokens.empty() ? 0 : answer.tokens.size() - 1;
  if (!console.json()) {
    console.Out("\n");
    console.Note(absl::StrFormat("%s, %.1f tokens/s; %s, %.1f tokens/s; %s",
                                 Counted(std::ssize(prompt), "prompt token"),
                                 rate(prompt.size(), answer.prefill),
                                 Counted(std::ssize(answer.tokens), "token"),
                                 rate(decoded, answer.decode),
                                 answer.finish_reason));
    return;
  }
  boost::json::object out;
  out["prompt_tokens"] = prompt.size();
  out["tokens"] =
      boost::json::array(answer.tokens.begin(), answer.tokens.end());
  out["text"] = host.tokenizer == nullptr
                    ? Json(nullptr)
                    : Json(boost::json::string(answer.text));
  out["finish_reason"] = answer.finish_reason;
  out["logits_crc32c"] = absl::StrFormat("%08x", answer.logits_crc);
  out["stages"] = host.pipeline->config().stages.size();
  out["timings"] = {
      {"load_s", absl::ToDoubleSeconds(host.load_time)},
      {"prefill_s", absl::ToDoubleSeconds(answer.prefill)},
      {"decode_s", absl::ToDoubleSeconds(answer.decode)},
      {"prefill_tokens_per_s", rate(prompt.size(), answer.prefill)},
      {"decode_tokens_per_s", rate(decoded, answer.decode)}};
  const worker::StageMemory memory = host.pipeline->memory();
  out["memory"] = {{"weights_bytes", memory.weights_bytes},
                   {"kv_bytes", memory.kv_bytes},
                   {"scratch_bytes", memory.scratch_bytes}};
  console.OutJson(out);
}

absl::Status RunCommand::Run(Console& console) {
  // State changes of the pipeline are of no interest to one command.
  SetLogLevel(LogLevel::kWarning);
  MILLRACE_RETURN_IF_ERROR(CheckPromptFlags());
  MILLRACE_ASSIGN_OR_RETURN(ComputeOptions compute, Validate(compute_, false));
  MILLRACE_ASSIGN_OR_RETURN(ModelHost host,
                            OpenModel(model_, std::move(compute)));
  AnswerRequest request;
  MILLRACE_ASSIGN_OR_RETURN(
      request.sampling,
      Validate(sampling_, host.checkpoint->generation_defaults()));
  MILLRACE_ASSIGN_OR_RETURN(request.prompt, ReadPrompt(host));
  if (request.prompt.empty()) {
    return UsageError("run", "the prompt is empty",
                      "give at least one token of text with --raw");
  }
  if (!request.sampling.stop.empty()) {
    MILLRACE_RETURN_IF_ERROR(NeedTokenizer(host, "--stop").status());
  }
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  MILLRACE_ASSIGN_OR_RETURN(request.max_tokens,
                            TokensFor(host, prompt_tokens, request.sampling));
  request.seed = request.sampling.seed.value_or(
      static_cast<uint64_t>(absl::GetCurrentTimeNanos()));
  if (!compute_.context.has_value()) {
    // KV for this prompt and answer, not for the model's whole context.
    host.compute.context = prompt_tokens + request.max_tokens;
  }
  MILLRACE_RETURN_IF_ERROR(StartPipeline(
      host, std::max<int64_t>(1, host.compute.concurrency), nullptr, console));
  if (!console.json()) {
    request.on_text = [&](const std::string& text) {
      console.Out(text);
      return console.OutStatus();
    };
  }
  MILLRACE_ASSIGN_OR_RETURN(const Answer answer, MakeAnswer(host, request));
  Report(console, host, request.prompt, answer);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeRunCommand() {
  return std::make_unique<RunCommand>();
}

}  // namespace millrace::cli
