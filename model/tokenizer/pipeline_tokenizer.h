#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/marked_text.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/template_processor.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/vocabulary.h"

namespace millrace::model {

// What a tokenizer is made of, whichever file it came from.
struct TokenizerParts {
  std::unique_ptr<Vocabulary> vocabulary;
  std::vector<AddedToken> added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<Bpe> bpe;  // null where encode_error says why
  Surroundings surroundings;
  Decoder decoder;
  absl::Status encode_error;  // what the first text is told
};

// Added tokens out of the raw text, normaliser, added tokens out of the
// normalised text, pre-tokenizer, byte-pair encoding.
// Immutable after Create; any thread.
class PipelineTokenizer final : public Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      TokenizerParts parts, absl::string_view object);

  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text,
                                              AddedTokenMode mode,
                                              bool add_special) const override;
  absl::StatusOr<std::vector<TokenId>> EncodeSegments(
      absl::Span<const TextSegment> segments) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const TokenId> ids,
                                     bool skip_special) const override;
  absl::StatusOr<std::string> Piece(TokenId id) const override;
  std::string TokenBytes(TokenId id) const override;
  int64_t vocab_size() const override;
  bool IsSpecial(TokenId id) const override;
  std::optional<TokenId> FindAdded(absl::string_view text) const override;
  std::vector<TokenId> Prefix() const override;
  std::unique_ptr<DecodeRun> StartDecoding() const override;

 private:
  struct Work;  // of one call

  PipelineTokenizer(TokenizerParts parts, absl::string_view object);

  absl::Status AddTokens();
  void CheckByteCharacters();
  // Null where the id has no token (a gap, or out of range).
  [[nodiscard]] const std::string* FindToken(TokenId id) const;
  absl::Status EncodeMarked(const MarkedText& text, Work* work) const;
  absl::Status EncodePiece(const MarkedText& text, size_t source_begin,
                           Work* work) const;
  absl::Status EncodeWords(absl::string_view text, bool at_start,
                           Work* work) const;

  TokenizerParts parts_;
  const std::string object_;
  AddedTokenMatcher raw_matcher_;
  AddedTokenMatcher normalized_matcher_;
  absl::flat_hash_map<TokenId, const AddedToken*> added_by_id_;
  absl::flat_hash_map<std::string, TokenId> added_by_text_;
  int64_t size_ = 0;
};

}  // namespace millrace::model
