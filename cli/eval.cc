#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "cli/commands.h"
#include "cli/dump_tap.h"
#include "cli/model_host.h"
#include "cli/token_input.h"
#include "cli/token_stream.h"

namespace millrace::cli {
namespace {

// Scores of one text, summed over its sequences.
struct Scores {
  int64_t scored = 0;
  double nll_sum = 0;
  uint32_t crc = 0;
};

class EvalCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "eval"; }
  [[nodiscard]] const char* summary() const override {
    return "Score a text: perplexity, checksum of all logits, hidden states";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace eval model.gguf --text-file book.txt --window 512";
  }
  void Define(CLI::App& app) override;
  absl::Status Run(Console& console) override;

 private:
  absl::StatusOr<std::vector<int32_t>> ReadTokens(const ModelHost& host) const;
  // Scores tokens [begin, end) as one sequence, those from `first` on.
  absl::Status ScoreSequence(ModelHost& host, const std::vector<int32_t>& part,
                             int64_t first, Scores& scores) const;
  absl::Status CheckFlags() const;
  static void Report(int64_t tokens, const Scores& scores, Console& console);

  std::string model_;
  std::string text_file_;
  std::string tokens_file_;
  std::optional<std::string> tokens_;
  std::string dump_;
  std::optional<int64_t> window_;
  ComputeFlags compute_;
  // Taken so that the options of every computing command are known here too.
  SamplingFlags sampling_;
};

void EvalCommand::Define(CLI::App& app) {
  app.add_option("MODEL", model_, "Model directory or GGUF file")->required();
  app.add_option("--text-file", text_file_, "Text to score");
  app.add_option("--tokens-file", tokens_file_,
                 "Token ids to score, between white space");
  app.add_option("--tokens", tokens_, "Token ids to score, as 1,2,3");
  app.add_option("--window", window_,
                 "Windows of so many tokens, the second half of each scored");
  app.add_option("--dump", dump_,
                 "Write hidden states and logits to this safetensors file");
  compute_.Define(app);
  sampling_.Define(app);
}

absl::Status EvalCommand::CheckFlags() const {
  const int sources = (text_file_.empty() ? 0 : 1) +
                      (tokens_file_.empty() ? 0 : 1) +
                      (tokens_.has_value() ? 1 : 0);
  if (sources != 1) {
    return UsageError("eval", "needs exactly one text",
                      "give --text-file, --tokens-file or --tokens");
  }
  if (window_.has_value() && *window_ < 2) {
    return UsageError("--window", "must be at least 2", "as 512");
  }
  if (window_.has_value() && !dump_.empty()) {
    return UsageError("--dump", "writes one sequence", "leave --window out");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> EvalCommand::ReadTokens(
    const ModelHost& host) const {
  const int64_t vocab_size = host.checkpoint->spec().vocab_size;
  if (tokens_.has_value()) {
    return ParseTokenIds(*tokens_, "--tokens", vocab_size);
  }
  if (!tokens_file_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                              ReadFile(tokens_file_, kTextBytesMax));
    return ParseTokenIds(text, tokens_file_, vocab_size);
  }
  MILLRACE_ASSIGN_OR_RETURN(const model::Tokenizer* tokenizer,
                            NeedTokenizer(host, "--text-file"));
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(text_file_, kTextBytesMax));
  return tokenizer->Encode(text, model::AddedTokenMode::kPlain, true);
}

absl::Status EvalCommand::ScoreSequence(ModelHost& host,
                                        const std::vector<int32_t>& part,
                                        int64_t first, Scores& scores) const {
  coordinator::GenerateRequest request;
  request.prompt = part;
  request.tokens_max = 0;
  request.want_prompt_scores = true;
  request.want_logits_crc = true;
  const auto row_bytes =
      static_cast<uint64_t>(host.checkpoint->spec().vocab_size) * 4;
  const auto size = static_cast<int64_t>(part.size());
  return RunRequest(host.pipeline->engine(), std::move(request),
                    [&](const TokenStream::Event& event) {
                      const auto* score =
                          std::get_if<coordinator::ScoreEvent>(&event);
                      if (score == nullptr) {
                        return;
                      }
                      scores.crc = Crc32cCombine(scores.crc, score->logits_crc,
                                                 row_bytes);
                      if (score->position >= first && score->position < size) {
                        scores.nll_sum -= static_cast<double>(score->logprob);
                        ++scores.scored;
                      }
                    })
      .status();
}

void EvalCommand::Report(int64_t tokens, const Scores& scores,
                         Console& console) {
  // Without a scored token there is no mean.
  const bool any = scores.scored > 0;
  const double nll =
      any ? scores.nll_sum / static_cast<double>(scores.scored) : 0.0;
  const std::string crc = absl::StrFormat("%08x", scores.crc);
  if (console.json()) {
    boost::json::object out;
    out["tokens"] = tokens;
    out["scored"] = scores.scored;
    out["nll"] = any ? Json(nll) : Json(nullptr);
    out["perplexity"] = any ? Json(std::exp(nll)) : Json(nullptr);
    out["logits_crc32c"] = crc;
    console.OutJson(out);
    return;
  }
  console.Out(
      absl::StrCat("tokens ", tokens, "\nscored ", scores.scored, "\nnll ",
                   any ? absl::StrFormat("%.6f", nll) : "none", "\nperplexity ",
                   any ? absl::StrFormat("%.4f", std::exp(nll)) : "none",
                   "\nlogits_crc32c ", crc, "\n"));
}

absl::Status EvalCommand::Run(Console& console) {
  // State changes of the pipeline are of no interest to one command.
  SetLogLevel(LogLevel::kWarning);
  MILLRACE_RETURN_IF_ERROR(CheckFlags());
  MILLRACE_ASSIGN_OR_RETURN(ComputeOptions compute, Validate(compute_, false));
  MILLRACE_ASSIGN_OR_RETURN(ModelHost host,
                            OpenModel(model_, std::move(compute)));
  MILLRACE_RETURN_IF_ERROR(
      Validate(sampling_, host.checkpoint->generation_defaults()).status());
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                            ReadTokens(host));
  if (tokens.empty()) {
    return UsageError("eval", "the text is empty", "give a longer one");
  }
  const auto size = static_cast<int64_t>(tokens.size());
  const int64_t window = window_.value_or(size);
  if (window > host.compute.context) {
    return UsageError(
        window_.has_value() ? "--window" : "eval",
        absl::StrCat(window,
                     " tokens in one sequence are more than the context of ",
                     host.compute.context),
        "score it in windows: --window 512");
  }
  if (window > size) {
    return UsageError(
        "--window",
        absl::StrCat("is longer than the ", Counted(size, "token"), " read"),
        "give a smaller one");
  }
  std::unique_ptr<DumpTap> tap;
  if (!dump_.empty()) {
    tap = std::make_unique<DumpTap>(host.checkpoint->spec(), tokens);
  }
  // KV for what will be read, not for the model's whole context.
  host.compute.context = window;
  MILLRACE_RETURN_IF_ERROR(
      StartPipeline(host, std::max<int64_t>(1, host.compute.concurrency),
                    tap.get(), console));
  Scores scores;
  const int64_t first = window_.has_value() ? window / 2 + 1 : 1;
  for (int64_t begin = 0; begin + window <= size; begin += window) {
    console.Progress(absl::StrFormat("scored %d of %d tokens", begin, size));
    MILLRACE_RETURN_IF_ERROR(
        ScoreSequence(host,
                      std::vector<int32_t>(tokens.begin() + begin,
                                           tokens.begin() + begin + window),
                      first, scores));
  }
  if (tap != nullptr) {
    MILLRACE_RETURN_IF_ERROR(tap->Write(dump_));
  }
  Report(size, scores, console);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeEvalCommand() {
  return std::make_unique<EvalCommand>();
}

}  // namespace millrace::cli
