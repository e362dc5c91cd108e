// Which requests PipelineCore accepts, and what it says to those it does not.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "coordinator/core/pipeline_core.h"

namespace millrace::coordinator {
namespace {

absl::Status Invalid(absl::string_view object, absl::string_view what,
                     absl::string_view hint = "") {
  return MakeError(absl::StatusCode::kInvalidArgument, object, what, hint);
}

}  // namespace

absl::Status PipelineCore::Validate(const GenerateRequest& request) const {
  const auto in_vocab = [&](int32_t token) {
    return token >= 0 && token < config_.vocab_size;
  };
  if (request.prompt.empty()) {
    return Invalid("prompt", "is empty: it needs at least one token");
  }
  if (!std::all_of(request.prompt.begin(), request.prompt.end(), in_vocab)) {
    return Invalid("prompt",
                   absl::StrCat("has a token id that is not below the "
                                "vocabulary's size ",
                                config_.vocab_size));
  }
  if (request.top_logprobs < 0 ||
      request.top_logprobs > transport::kTopLogprobsMax) {
    return Invalid("top_logprobs",
                   absl::StrCat("must be 0 to ", transport::kTopLogprobsMax));
  }
  const auto& bias = request.sampling.logit_bias;
  if (static_cast<int64_t>(bias.size()) > transport::kLogitBiasMax) {
    return Invalid(
        "logit_bias",
        absl::StrCat("has more than ", transport::kLogitBiasMax, " entries"));
  }
  if (!std::all_of(bias.begin(), bias.end(),
                   [&](const transport::LogitBias& one) {
                     return in_vocab(one.token);
                   })) {
    return Invalid("logit_bias",
                   absl::StrCat("has a token id that is not below "
                                "the vocabulary's size ",
                                config_.vocab_size));
  }
  return ValidateLength(request);
}

absl::Status PipelineCore::ValidateLength(
    const GenerateRequest& request) const {
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t longest = ledger_.longest();
  if (request.tokens_max < 0) {
    return Invalid("max_tokens", "must not be negative");
  }
  const std::string limit =
      ledger_.longest_stage() < 0
          ? absl::StrCat("the context of ", longest)
          : absl::StrCat(
                "the ", longest, " that the KV blocks of stage '",
                config_.stages[static_cast<size_t>(ledger_.longest_stage())]
                    .name,
                "' hold");
  if (prompt > longest) {
    return Invalid("prompt",
                   absl::StrCat("has ", prompt, " tokens, more than ", limit));
  }
  if (request.tokens_max > longest - prompt) {
    return Invalid("max_tokens",
                   absl::StrCat(request.tokens_max, " after a prompt of ",
                                prompt, " tokens is more than ", limit),
                   absl::StrCat("ask for at most ", longest - prompt));
  }
  return absl::OkStatus();
}

absl::Status PipelineCore::QueueIsFull(absl::Duration now,
                                       int64_t positions) const {
  return QueueFull(
      absl::StrCat(
          "full (", Counted(waiting_.size(), "request"), " with ",
          Counted(waiting_.tokens(), "token"), " waiting): ",
          BindingShortage(waiting_.empty() ? positions
                                           : waiting_.front()->positions)),
      waiting_.RetryAfterSeconds(now));
}

std::string PipelineCore::BindingShortage(int64_t positions) const {
  if (!connected_) {
    return not_ready_reason_;
  }
  const std::optional<int64_t> stage = ledger_.BindingStage(positions);
  if (!stage.has_value()) {
    return "room is coming free";
  }
  return absl::StrCat("waiting for ", ledger_.Shortage(*stage, positions));
}

}  // namespace millrace::coordinator
