#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

struct RenderLimits {
  int64_t steps_max = 2'000'000;  // of the interpreter
  int64_t output_bytes_max = int64_t{32} << 20;
  int64_t memory_bytes_max = int64_t{128} << 20;  // of all values alive
};

// A compiled Jinja chat template. Immutable; any thread.
class ChatTemplate {
 public:
  // InputError with line and reason on a syntax error. `object` names the
  // source.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Compile(
      absl::string_view source, absl::string_view object);
  ~ChatTemplate();

  // Renders with the variables in `input` (an object: messages, tools,
  // add_generation_prompt, bos_token, ...); strftime_now reads `now`. Texts
  // from `input` carry their origin through every operation of the template:
  // what stems from them comes back with AddedTokenMode::kNone, the template's
  // own text, bos_token and eos_token as kParseSpecial. Neighboring pieces of
  // one mode are joined. An InputError carries raise_exception's text alone as
  // its `what`, or "line N: reason"; limits that are passed are
  // kResourceExhausted.
  absl::StatusOr<std::vector<TextSegment>> Render(
      const Json& input, absl::Time now, const RenderLimits& limits = {}) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

// The two steps that transformers applies to messages before rendering: keys
// with null are dropped; of reasoning_content, thinking, reasoning the first
// one present is also given as reasoning_content and (unless present) thinking.
void NormaliseMessages(Json& input);

}  // namespace millrace::model
