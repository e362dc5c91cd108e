#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "model/chat/chat_template.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::coordinator {

// A vocabulary that needs no file: 256 bytes, four special tokens, then
// made-up words of two syllables with a space in front. Longest match.
class FakeTokenizer final : public model::Tokenizer {
 public:
  static constexpr model::TokenId kBos = 256;
  static constexpr model::TokenId kEos = 257;
  static constexpr model::TokenId kTurnStart = 258;
  static constexpr model::TokenId kTurnEnd = 259;
  static constexpr model::TokenId kFirstWord = 260;
  static constexpr int64_t kVocabSize = 5000;

  FakeTokenizer();

  [[nodiscard]] absl::StatusOr<std::vector<model::TokenId>> Encode(
      absl::string_view text, model::AddedTokenMode mode,
      bool add_special) const override;
  [[nodiscard]] absl::StatusOr<std::vector<model::TokenId>> EncodeSegments(
      absl::Span<const model::TextSegment> segments) const override;
  [[nodiscard]] absl::StatusOr<std::string> Decode(
      absl::Span<const model::TokenId> ids, bool skip_special) const override;
  [[nodiscard]] absl::StatusOr<std::string> Piece(
      model::TokenId id) const override;
  [[nodiscard]] std::string TokenBytes(model::TokenId id) const override;
  [[nodiscard]] int64_t vocab_size() const override { return kVocabSize; }
  [[nodiscard]] bool IsSpecial(model::TokenId id) const override;
  [[nodiscard]] std::optional<model::TokenId> FindAdded(
      absl::string_view text) const override;
  [[nodiscard]] std::vector<model::TokenId> Prefix() const override;

 private:
  void EncodeText(absl::string_view text, model::AddedTokenMode mode,
                  std::vector<model::TokenId>& out) const;

  std::vector<std::string> pieces_;
  absl::flat_hash_map<std::string, model::TokenId> words_;
};

// A template of turns like <|im_start|>role\ncontent<|im_end|>\n.
std::unique_ptr<model::ChatTemplate> MakeFakeChatTemplate();

}  // namespace millrace::coordinator
