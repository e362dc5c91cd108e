#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/json.h"
#include "coordinator/api/completion_session.h"

namespace millrace::coordinator {

// What all chunks of one answer share.
struct AnswerHead {
  bool chat = true;  // else a text completion
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
  std::string fingerprint;
};

struct AnswerUsage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

// One choice, whole or a piece of it.
struct ChoicePart {
  int64_t index = 0;
  std::string text = {};
  std::vector<TokenScore> scores = {};
  bool with_logprobs = false;  // else "logprobs": null
  int64_t text_offset = 0;     // code points in front of the first score
  int32_t top_logprobs = 0;
  absl::string_view finish_reason = {};  // empty: null
  bool with_role = false;                // first chunk of a chat choice
  // Given back where the model has no tokenizer, or when asked for.
  const std::vector<int32_t>* token_ids = nullptr;
};

// Writes answers in the shapes of the published API. Borrows the tokenizer
// (null: tokens have no text). Immutable; any thread.
class AnswerFormat {
 public:
  AnswerFormat(AnswerHead head, const model::Tokenizer* tokenizer);

  [[nodiscard]] Json Whole(const std::vector<ChoicePart>& choices,
                           const AnswerUsage& usage) const;
  // `usage_key`: whether "usage": null stands in it.
  [[nodiscard]] Json Chunk(const ChoicePart& choice, bool usage_key) const;
  [[nodiscard]] Json UsageChunk(const AnswerUsage& usage) const;

  [[nodiscard]] const AnswerHead& head() const { return head_; }

 private:
  [[nodiscard]] boost::json::object Base(bool chunk) const;
  [[nodiscard]] boost::json::object Choice(const ChoicePart& part,
                                           bool chunk) const;
  [[nodiscard]] Json ChatLogprobs(const ChoicePart& part) const;
  [[nodiscard]] Json TextLogprobs(const ChoicePart& part) const;
  [[nodiscard]] std::string TokenText(int32_t token) const;

  const AnswerHead head_;
  const model::Tokenizer* const tokenizer_;
};

// One server-sent event: "data: ...\n\n".
std::string SseData(const Json& value);
inline constexpr absl::string_view kSseDone = "data: [DONE]\n\n";
inline constexpr absl::string_view kSseKeepAlive = ": keep-alive\n\n";

}  // namespace millrace::coordinator
