#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/compute_options.h"
#include "cli/model_host.h"

namespace millrace::cli {

inline constexpr char kInterrupted[] = "interrupted";

// One answer of the model to a prompt of token ids, as `run` and `chat` make
// it.
struct Answer {
  std::vector<int32_t> tokens;  // generated, an end token included
  std::string text;             // without it; empty without a tokenizer
  std::string finish_reason;    // stop, length or kInterrupted
  uint32_t logits_crc = 0;
  absl::Duration prefill;  // until the first token
  absl::Duration decode;   // from there to the end
};

struct AnswerRequest {
  std::vector<int32_t> prompt;
  SamplingChoice sampling;
  uint64_t seed = 0;
  int64_t max_tokens = 0;
  // Each piece of text as soon as it is certain; an error ends the answer.
  // Nullable.
  std::function<absl::Status(const std::string&)> on_text;
  // An interrupt ends the answer where it is instead of failing it.
  bool keep_interrupted = false;
};

// kCancelled after an interrupt, or the error of on_text. The host's pipeline
// is running.
absl::StatusOr<Answer> MakeAnswer(ModelHost& host,
                                  const AnswerRequest& request);

// Room for the answer: what was asked for, or a default, within the context.
// UsageError when the prompt alone is too long.
absl::StatusOr<int64_t> TokensFor(const ModelHost& host, int64_t prompt_tokens,
                                  const SamplingChoice& sampling);

}  // namespace millrace::cli
