#include "coordinator/api/completion_session.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"

namespace millrace::coordinator {

CompletionSession::CompletionSession(Options options)
    : options_(std::move(options)), matcher_(options_.stop) {
  if (options_.tokenizer != nullptr) {
    detokenizer_.emplace(*options_.tokenizer, options_.skip_special);
  }
}

TokenScore CompletionSession::ScoreOf(const TokenEvent& event, bool hidden,
                                      absl::string_view text) {
  TokenScore score{.token = event.token,
                   .logprob = event.logprob,
                   .top = event.top,
                   .text = std::string(text)};
  const model::Tokenizer* tokenizer = options_.tokenizer;
  if (tokenizer == nullptr || hidden ||
      (options_.skip_special && tokenizer->IsSpecial(event.token))) {
    return score;
  }
  score.bytes = tokenizer->TokenBytes(event.token);
  // Some vocabularies drop the space in front of the first word.
  if (!text_begun_ && !text.empty() && !absl::StartsWith(text, " ") &&
      absl::StartsWith(score.bytes, " ") &&
      absl::string_view(score.bytes).substr(1) == text) {
    score.bytes.erase(0, 1);
  }
  return score;
}

CompletionSession::Delta CompletionSession::OnToken(const TokenEvent& event) {
  if (stopped_) {
    return {};
  }
  tokens_.push_back(event.token);
  const bool hidden = absl::c_linear_search(options_.end_tokens, event.token);
  std::string text;
  if (!hidden && detokenizer_.has_value()) {
    text = detokenizer_->Append(event.token);
  }
  if (options_.want_logprobs) {
    const auto bytes = static_cast<int64_t>(text.size());
    pending_.push_back({ScoreOf(event, hidden, text), detokenized_bytes_,
                        detokenized_bytes_ + bytes});
  }
  text_begun_ = text_begun_ || !text.empty();
  detokenized_bytes_ += static_cast<int64_t>(text.size());
  std::string certain = matcher_.Append(text);
  stopped_ = matcher_.matched();
  return Release(std::move(certain), stopped_);
}

CompletionSession::Delta CompletionSession::OnFinish(FinishReason reason) {
  if (stopped_) {
    return {};
  }
  reason_ = reason;
  const std::string tail =
      detokenizer_.has_value() ? detokenizer_->Finish() : "";
  if (!pending_.empty()) {
    pending_.back().score.text += tail;
    pending_.back().end += static_cast<int64_t>(tail.size());
  }
  std::string certain = matcher_.Append(tail);
  certain += matcher_.Finish();
  stopped_ = matcher_.matched();
  return Release(std::move(certain), /*finished=*/true);
}

// Hands out the scores of tokens whose text is out. At the end the rest goes
// too, up to the token in which a stop string begins.
CompletionSession::Delta CompletionSession::Release(std::string text,
                                                    bool finished) {
  Delta delta;
  released_bytes_ += static_cast<int64_t>(text.size());
  delta.text = std::move(text);
  while (!pending_.empty()) {
    Pending& front = pending_.front();
    const bool whole = front.end <= released_bytes_;
    const bool partly = finished && front.begin < released_bytes_;
    if (!whole && !partly) {
      break;
    }
    if (!whole) {
      front.score.text.resize(
          static_cast<size_t>(released_bytes_ - front.begin));
    }
    delta.scores.push_back(std::move(front.score));
    pending_.pop_front();
  }
  return delta;
}

absl::string_view CompletionSession::finish_reason() const {
  if (stopped_) {
    return "stop";
  }
  switch (reason_) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
  }
  return "stop";
}

std::vector<TokenScore> PromptScores(const model::Tokenizer* tokenizer,
                                     const std::vector<int32_t>& prompt,
                                     const std::vector<ScoreEvent>& scores,
                                     bool skip_special) {
  std::vector<TokenScore> out(prompt.size());
  std::optional<model::StreamingDetokenizer> detokenizer;
  if (tokenizer != nullptr) {
    detokenizer.emplace(*tokenizer, skip_special);
  }
  for (size_t i = 0; i < prompt.size(); ++i) {
    out[i].token = prompt[i];
    out[i].has_logprob = false;
    if (detokenizer.has_value()) {
      out[i].text = detokenizer->Append(prompt[i]);
      out[i].bytes = tokenizer->TokenBytes(prompt[i]);
    }
  }
  if (detokenizer.has_value() && !out.empty()) {
    out.back().text += detokenizer->Finish();
  }
  for (const ScoreEvent& score : scores) {
    if (score.position > 0 &&
        score.position < static_cast<int64_t>(out.size())) {
      TokenScore& entry = out[static_cast<size_t>(score.position)];
      entry.has_logprob = true;
      entry.logprob = score.logprob;
      entry.top = score.top;
    }
  }
  return out;
}

}  // namespace millrace::coordinator
