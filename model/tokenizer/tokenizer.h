#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/tokenizer/gguf_vocabulary.h"

namespace millrace::model {

using TokenId = int32_t;

// Which added tokens are matched in a text.
enum class AddedTokenMode {
  kPlain,         // those not flagged special
  kParseSpecial,  // all
  kNone,          // none: text of users, which must not forge a turn
};

// A piece of a prompt and how far it is trusted; see chat/chat_template.h.
struct TextSegment {
  std::string text;
  AddedTokenMode mode = AddedTokenMode::kParseSpecial;
};

class DecodeRun;  // decoder.h

// Text to token ids and back. Immutable after construction; any thread.
// Input is any bytes: ill-formed UTF-8 counts as U+FFFD, one per maximal
// ill-formed part. Time is linear in the text, whatever it holds.
class Tokenizer {
 public:
  // `object` names the source in errors. A tokenizer.json is checked whole.
  // Of a GGUF file, whose model may well run on token ids, the structure is
  // checked; an unknown pre-tokenizer or a merge that cannot work is an error
  // of the first text.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromTokenizerJson(
      absl::string_view json, absl::string_view object);
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(
      const GgufVocabulary& vocabulary, absl::string_view object);
  virtual ~Tokenizer() = default;

  // InputError naming the reason when this vocabulary cannot encode text (an
  // unknown pre-tokenizer, no byte characters); kResourceExhausted when a
  // pattern exceeds its match limit.
  [[nodiscard]] virtual absl::StatusOr<std::vector<TokenId>> Encode(
      absl::string_view text, AddedTokenMode mode, bool add_special) const = 0;

  // Encodes segments into one sequence: trusted text is cut at added tokens,
  // untrusted text never is; between two added tokens text is tokenized as one
  // piece even across a border of segments, so that a prompt of a benign user
  // has the ids that the joined text has. No BOS is added.
  [[nodiscard]] virtual absl::StatusOr<std::vector<TokenId>> EncodeSegments(
      absl::Span<const TextSegment> segments) const = 0;

  // Bytes of the text; ids out of range are InvalidArgument.
  [[nodiscard]] virtual absl::StatusOr<std::string> Decode(
      absl::Span<const TokenId> ids, bool skip_special) const = 0;

  // The token's string in the vocabulary's own spelling, for `pieces`.
  [[nodiscard]] virtual absl::StatusOr<std::string> Piece(TokenId id) const = 0;
  // The bytes one token stands for in running text (log-probabilities' bytes).
  [[nodiscard]] virtual std::string TokenBytes(TokenId id) const = 0;

  [[nodiscard]] virtual int64_t vocab_size() const = 0;
  [[nodiscard]] virtual bool IsSpecial(TokenId id) const = 0;
  [[nodiscard]] virtual std::optional<TokenId> FindAdded(
      absl::string_view text) const = 0;
  // What Encode(add_special) puts in front; empty when nothing.
  [[nodiscard]] virtual std::vector<TokenId> Prefix() const = 0;

  // What StreamingDetokenizer feeds with Piece of each id; borrows this. Where
  // it is null (the default), TokenBytes of all ids are joined.
  [[nodiscard]] virtual std::unique_ptr<DecodeRun> StartDecoding() const;
};

// Turns ids into text piece by piece: what Append returns, joined, plus Finish
// equals Decode of all ids, however they are cut; no code point is ever split.
// One thread; borrows the tokenizer.
class StreamingDetokenizer {
 public:
  StreamingDetokenizer(const Tokenizer& tokenizer, bool skip_special);
  ~StreamingDetokenizer();
  StreamingDetokenizer(StreamingDetokenizer&&) noexcept;
  StreamingDetokenizer& operator=(StreamingDetokenizer&&) noexcept;

  // Text that is certain after this token; may be empty.
  [[nodiscard]] std::string Append(TokenId id);
  // What was held back, ill-formed bytes as U+FFFD.
  [[nodiscard]] std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::model
