#include "cli/answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "cli/interrupt.h"
#include "cli/token_stream.h"
#include "coordinator/api/completion_session.h"

namespace millrace::cli {
namespace {

// Where --max-tokens is not given: a long answer, and an end for models that
// never stop by themselves.
constexpr int64_t kMaxTokensDefault = 1024;

coordinator::GenerateRequest MakeRequest(const ModelHost& host,
                                         const AnswerRequest& request) {
  const SamplingChoice& choice = request.sampling;
  coordinator::GenerateRequest generate;
  generate.prompt = request.prompt;
  generate.tokens_max = request.max_tokens;
  generate.want_logits_crc = true;
  if (!choice.ignore_eos) {
    generate.stop_tokens = host.checkpoint->spec().stop_tokens;
  }
  transport::SamplingOptions& sampling = generate.sampling;
  sampling.temperature = static_cast<float>(choice.temperature);
  sampling.top_k = static_cast<int32_t>(choice.top_k);
  sampling.top_p = static_cast<float>(choice.top_p);
  sampling.min_p = static_cast<float>(choice.min_p);
  sampling.presence_penalty = static_cast<float>(choice.presence_penalty);
  sampling.frequency_penalty = static_cast<float>(choice.frequency_penalty);
  sampling.repetition_penalty = static_cast<float>(choice.repetition_penalty);
  sampling.seed = request.seed;
  return generate;
}

}  // namespace

absl::StatusOr<int64_t> TokensFor(const ModelHost& host, int64_t prompt_tokens,
                                  const SamplingChoice& sampling) {
  const int64_t room = host.compute.context - prompt_tokens;
  if (room < 1) {
    return UsageError("prompt",
                      absl::StrCat("is ", Counted(prompt_tokens, "token"),
                                   ", the context only ", host.compute.context),
                      "shorten it, or give a larger --context");
  }
  if (!sampling.max_tokens.has_value()) {
    return std::min(room, kMaxTokensDefault);
  }
  if (*sampling.max_tokens > room) {
    return UsageError("--max-tokens",
                      absl::StrCat(*sampling.max_tokens, " behind a prompt of ",
                                   prompt_tokens, " is beyond the context of ",
                                   host.compute.context),
                      absl::StrCat("give at most ", room));
  }
  return *sampling.max_tokens;
}

absl::StatusOr<Answer> MakeAnswer(ModelHost& host,
                                  const AnswerRequest& request) {
  coordinator::GenerateRequest generate = MakeRequest(host, request);
  coordinator::CompletionSession session({.tokenizer = host.tokenizer.get(),
                                          .stop = request.sampling.stop,
                                          .skip_special = true,
                                          .end_tokens = generate.stop_tokens,
                                          .want_logprobs = false});
  const auto row_bytes =
      static_cast<uint64_t>(host.checkpoint->spec().vocab_size) * 4;
  const SystemClock clock;
  const absl::Duration start = clock.Monotonic();
  absl::Duration first = absl::ZeroDuration();
  Answer answer;
  absl::Status delivered;
  const auto deliver = [&](const std::string& text) {
    if (request.on_text && !text.empty() && delivered.ok()) {
      delivered = request.on_text(text);
    }
    answer.text.append(text);
  };
  const absl::StatusOr<coordinator::FinishReason> reason = RunRequest(
      host.pipeline->engine(), std::move(generate),
      [&](const TokenStream::Event& event) {
        const auto* token = std::get_if<coordinator::TokenEvent>(&event);
        if (token == nullptr) {
          return;
        }
        if (first == absl::ZeroDuration()) {
          first = clock.Monotonic();
        }
        answer.logits_crc =
            Crc32cCombine(answer.logits_crc, token->logits_crc, row_bytes);
        deliver(session.OnToken(*token).text);
      },
      [&] { return session.stopped() || !delivered.ok(); });
  const bool interrupted = request.keep_interrupted && Interrupts() > 0 &&
                           absl::IsCancelled(reason.status());
  if (reason.ok()) {
    deliver(session.OnFinish(*reason).text);
  } else if (!interrupted) {
    return reason.status();
  }
  MILLRACE_RETURN_IF_ERROR(delivered);
  answer.tokens = session.tokens();
  answer.finish_reason =
      interrupted ? kInterrupted : std::string(session.finish_reason());
  answer.prefill = first - start;
  answer.decode = clock.Monotonic() - first;
  return answer;
}

}  // namespace millrace::cli
