// Text encoded and decoded is the text again (ill-formed parts as U+FFFD), with
// each known pre-tokenizer; untrusted text gives no added token; cuts between
// untrusted segments change nothing. The first byte picks the pre-tokenizer,
// the second the cut.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/tokenizer/byte_alphabet.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

constexpr TokenId kControl = 256;

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

std::string Alphabet(absl::string_view bytes) {
  std::string out;
  AppendAsAlphabet(bytes, &out);
  return out;
}

std::unique_ptr<Tokenizer> WithPre(const char* pre) {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(
        Alphabet(std::string(1, static_cast<char>(byte))));
  }
  vocabulary.types.assign(256, GgufTokenType::kNormal);
  vocabulary.tokens.emplace_back("<|im_start|>");
  vocabulary.types.push_back(GgufTokenType::kControl);
  const char* pairs[][2] = {
      {"a", "a"},       {"aa", "a"},      {" ", " "}, {" ", "a"},
      {"\n", "\n"},     {"  ", " "},      {"1", "1"}, {"\xC3", "\xA9"},
      {"\xCC", "\x81"}, {"e", "\xCC\x81"}};
  for (const auto& [left, right] : pairs) {
    vocabulary.merges.push_back(Alphabet(left) + " " + Alphabet(right));
    vocabulary.tokens.push_back(Alphabet(std::string(left) + right));
    vocabulary.types.push_back(GgufTokenType::kNormal);
  }
  auto tokenizer = Tokenizer::FromGguf(vocabulary, "fuzz");
  Require(tokenizer.ok());
  return *std::move(tokenizer);
}

const std::vector<std::unique_ptr<Tokenizer>>& Tokenizers() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<std::unique_ptr<Tokenizer>>();
    for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "gpt-4o",
                            "deepseek-v3", "kimi-k2", "qwen2", "qwen35"}) {
      all->push_back(WithPre(pre));
    }
    return all;
  }();
  return *kAll;
}

// Those in front of it do not normalise.
constexpr size_t kFirstNormalised = 6;

void Exercise(size_t which, size_t cut, absl::string_view text) {
  const Tokenizer& tokenizer = *Tokenizers()[which];
  const auto ids = tokenizer.Encode(text, AddedTokenMode::kNone, false);
  Require(ids.ok());
  for (const TokenId id : *ids) {
    Require(id != kControl);
  }
  std::string lossy;
  LossyUtf8 decoder;
  decoder.Append(text, &lossy);
  decoder.Finish(&lossy);
  const auto decoded = tokenizer.Decode(*ids, false);
  Require(decoded.ok());
  Require(which >= kFirstNormalised || *decoded == lossy);
  const std::vector<TextSegment> segments = {
      {std::string(text.substr(0, cut)), AddedTokenMode::kNone},
      {std::string(text.substr(cut)), AddedTokenMode::kNone}};
  Require(*tokenizer.EncodeSegments(segments) == *ids);
  Require(tokenizer.Encode(text, AddedTokenMode::kParseSpecial, true).ok());
}

}  // namespace
}  // namespace millrace::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const absl::string_view text(reinterpret_cast<const char*>(data) + 2,
                               size - 2);
  millrace::model::Exercise(data[0] % millrace::model::Tokenizers().size(),
                            text.empty() ? 0 : data[1] % (text.size() + 1),
                            text);
  return 0;
}
