#include "tests/clients/stub/fake_tokenizer.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace millrace::coordinator {
namespace {

using model::AddedTokenMode;
using model::TokenId;

constexpr size_t kWordBytes = 5;

}  // namespace

FakeTokenizer::FakeTokenizer() {
  for (int byte = 0; byte < 256; ++byte) {
    pieces_.emplace_back(1, static_cast<char>(byte));
  }
  for (const char* special : {"<s>", "</s>", "<|im_start|>", "<|im_end|>"}) {
    pieces_.emplace_back(special);
  }
  constexpr absl::string_view kConsonants = "bdfgklmnprstvwz";
  constexpr absl::string_view kVowels = "aeiou";
  for (size_t i = 0; static_cast<int64_t>(pieces_.size()) < kVocabSize; ++i) {
    const size_t first = i % 75;
    const size_t second = i / 75;
    const std::string word = {' ', kConsonants[first % 15], kVowels[first / 15],
                              kConsonants[second % 15], kVowels[second / 15]};
    words_[word] = static_cast<TokenId>(pieces_.size());
    pieces_.push_back(word);
  }
}

void FakeTokenizer::EncodeText(absl::string_view text, AddedTokenMode mode,
                               std::vector<TokenId>& out) const {
  while (!text.empty()) {
    if (mode == AddedTokenMode::kParseSpecial && text[0] == '<') {
      bool found = false;
      for (TokenId id = kBos; id <= kTurnEnd && !found; ++id) {
        const std::string& piece = pieces_[static_cast<size_t>(id)];
        if (absl::StartsWith(text, piece)) {
          out.push_back(id);
          text.remove_prefix(piece.size());
          found = true;
        }
      }
      if (found) {
        continue;
      }
    }
    const auto word = words_.find(text.substr(0, kWordBytes));
    if (text[0] == ' ' && word != words_.end()) {
      out.push_back(word->second);
      text.remove_prefix(kWordBytes);
      continue;
    }
    out.push_back(static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
  }
}

absl::StatusOr<std::vector<TokenId>> FakeTokenizer::Encode(
    absl::string_view text, AddedTokenMode mode, bool add_special) const {
  std::vector<TokenId> out;
  if (add_special) {
    out = Prefix();
  }
  EncodeText(text, mode, out);
  return out;
}

absl::StatusOr<std::vector<TokenId>> FakeTokenizer::EncodeSegments(
    absl::Span<const model::TextSegment> segments) const {
  std::vector<TokenId> out;
  for (const model::TextSegment& segment : segments) {
    EncodeText(segment.text, segment.mode, out);
  }
  return out;
}

absl::StatusOr<std::string> FakeTokenizer::Decode(absl::Span<const TokenId> ids,
                                                  bool skip_special) const {
  std::string out;
  for (const TokenId id : ids) {
    if (id < 0 || id >= kVocabSize) {
      return absl::InvalidArgumentError("no such token");
    }
    if (!skip_special || !IsSpecial(id)) {
      out += TokenBytes(id);
    }
  }
  return out;
}

absl::StatusOr<std::string> FakeTokenizer::Piece(TokenId id) const {
  return TokenBytes(id);
}

std::string FakeTokenizer::TokenBytes(TokenId id) const {
  MILLRACE_CHECK(id >= 0 && id < kVocabSize);
  return pieces_[static_cast<size_t>(id)];
}

bool FakeTokenizer::IsSpecial(TokenId id) const {
  return id >= kBos && id <= kTurnEnd;
}

std::optional<TokenId> FakeTokenizer::FindAdded(absl::string_view text) const {
  for (TokenId id = kBos; id <= kTurnEnd; ++id) {
    if (pieces_[static_cast<size_t>(id)] == text) {
      return id;
    }
  }
  return std::nullopt;
}

std::vector<TokenId> FakeTokenizer::Prefix() const { return {}; }

std::unique_ptr<model::ChatTemplate> MakeFakeChatTemplate() {
  auto made = model::ChatTemplate::Compile(
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n'"
      " + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
      "{% endif %}",
      "the stub's template");
  MILLRACE_CHECK(made.ok());
  return *std::move(made);
}

}  // namespace millrace::coordinator
