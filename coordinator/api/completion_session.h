#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/api/stop_matcher.h"
#include "coordinator/engine/engine.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::coordinator {

// A generated (or echoed) token with its log-probability and what it added to
// the text.
struct TokenScore {
  int32_t token = 0;
  bool has_logprob = true;  // not for the first token of a prompt
  float logprob = 0;
  transport::TopTokens top = {};
  std::string text =
      {};  // its part of the answer; all of them join to the text
  std::string bytes = {};  // of the token itself; empty when it is not shown
};

// Turns the tokens of one sequence into text: whole code points, stop strings
// held back and cut off, end tokens hidden, log-probabilities kept in step with
// the text. Knows nothing of HTTP; commands use it as the API does. One thread;
// borrows the tokenizer.
class CompletionSession {
 public:
  struct Options {
    const model::Tokenizer* tokenizer = nullptr;  // null: ids only, no text
    std::vector<std::string> stop = {};           // none empty
    bool skip_special = true;
    std::vector<int32_t> end_tokens = {};  // end the sequence and are not shown
    bool want_logprobs = false;
  };

  // What became certain.
  struct Delta {
    std::string text = {};
    std::vector<TokenScore> scores = {};  // empty unless wanted
  };

  explicit CompletionSession(Options options);

  // After stopped() further tokens are ignored; the caller then cancels the
  // sequence.
  Delta OnToken(const TokenEvent& event);
  // The sequence ended. Delivers what was held back.
  Delta OnFinish(FinishReason reason);

  // A stop string ended the answer.
  [[nodiscard]] bool stopped() const { return stopped_; }
  // Tokens that count as usage: all up to the one that completed a stop string.
  [[nodiscard]] int64_t num_tokens() const {
    return static_cast<int64_t>(tokens_.size());
  }
  [[nodiscard]] const std::vector<int32_t>& tokens() const { return tokens_; }
  // "stop" or "length"; valid after stopped() or OnFinish.
  [[nodiscard]] absl::string_view finish_reason() const;

 private:
  struct Pending {
    TokenScore score;
    int64_t begin = 0;  // byte offsets in the text before stop strings
    int64_t end = 0;
  };

  TokenScore ScoreOf(const TokenEvent& event, bool hidden,
                     absl::string_view text);
  Delta Release(std::string text, bool finished);

  const Options options_;
  std::optional<model::StreamingDetokenizer> detokenizer_;
  StopMatcher matcher_;
  std::vector<int32_t> tokens_;
  std::deque<Pending> pending_;
  int64_t detokenized_bytes_ = 0;
  int64_t released_bytes_ = 0;
  bool text_begun_ = false;
  bool stopped_ = false;
  FinishReason reason_ = FinishReason::kStop;
};

// Scores of a prompt for `echo`: the pieces join to the decoded prompt.
// `scores` as they came from the engine.
std::vector<TokenScore> PromptScores(const model::Tokenizer* tokenizer,
                                     const std::vector<int32_t>& prompt,
                                     const std::vector<ScoreEvent>& scores,
                                     bool skip_special);

}  // namespace millrace::coordinator
