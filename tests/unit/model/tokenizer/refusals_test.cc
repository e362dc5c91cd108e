// Files that cannot work are refused by name, and vocabularies that cannot
// encode still decode; each case damages one thing of a file that works.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/tokenizer/byte_alphabet.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSmall = R"({
  "added_tokens": [{"id": 3, "content": "<x>", "special": true}],
  "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Split", "pattern": {"String": " "},
                    "behavior": "Isolated"},
  "post_processor": null,
  "decoder": {"type": "Fuse"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
            "merges": ["a b"]}})";

TEST(Refusals, SmallFileWorks) {
  const auto tokenizer = Tokenizer::FromTokenizerJson(kSmall, "t.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(
      *(*tokenizer)->Encode("abba<x>", AddedTokenMode::kParseSpecial, true),
      ElementsAre(2, 1, 0, 3));
}

TEST(Refusals, NameTheComponentOrTheKey) {
  const std::pair<std::string, std::string> changes[] = {
      {R"("type": "NFC")", R"("type": "Precompiled")"},
      {R"("type": "NFC")", R"("type": "BertNormalizer")"},
      {R"("type": "Split")", R"("type": "Whitespace")"},
      {R"("behavior": "Isolated")", R"("behavior": "Odd")"},
      {R"("String": " ")", R"("Regex": "(")"},
      {R"("type": "Fuse")", R"("type": "WordPiece")"},
      {R"("type": "BPE")", R"("type": "Unigram")"},
      {R"("type": "BPE")", R"("type": "BPE", "dropout": 0.5)"},
      {R"("type": "BPE")", R"("type": "BPE", "unk_token": "?")"},
      {R"("type": "BPE")", R"("type": "BPE", "end_of_word_suffix": "z")"},
      {R"("b": 1)", R"("b": 0)"},
      {R"("b": 1)", R"("b": -1)"},
      {R"("b": 1)", R"("b": 4000000000)"},
      {R"("b": 1)", R"("b": "1")"},
      {R"("a b")", R"("a c")"},
      {R"("a b")", R"("ab")"},
      {R"("a b")", R"("a b c")"},
      {R"("a b")", R"(["a"])"},
      {R"("id": 3)", R"("id": -3)"},
      {R"("post_processor": null)", R"("post_processor": {"type": "Odd"})"},
      {R"("post_processor": null)",
       R"("post_processor": {"type": "BertProcessing", "cls": ["a", 99],
           "sep": ["b", 1]})"},
      {R"("post_processor": null)",
       R"("post_processor": {"type": "TemplateProcessing", "single": [],
           "special_tokens": {}})"},
  };
  for (const auto& [from, to] : changes) {
    const std::string json = absl::StrReplaceAll(kSmall, {{from, to}});
    ASSERT_NE(json, kSmall) << from;
    const auto tokenizer = Tokenizer::FromTokenizerJson(json, "t.json");
    ASSERT_FALSE(tokenizer.ok()) << to;
    EXPECT_EQ(ExitCodeOf(tokenizer.status()), 4) << tokenizer.status();
    EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("t.json"));
  }
}

GgufVocabulary ByteVocabulary() {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.emplace_back();
    AppendAsAlphabet(std::string(1, static_cast<char>(byte)),
                     &vocabulary.tokens.back());
  }
  vocabulary.types.assign(256, GgufTokenType::kNormal);
  return vocabulary;
}

void Add(GgufVocabulary& vocabulary, const std::string& token,
         GgufTokenType type) {
  vocabulary.tokens.push_back(token);
  vocabulary.types.push_back(type);
}

TEST(Gguf, UnknownPreDecodesAndRefusesText) {
  GgufVocabulary vocabulary = ByteVocabulary();
  for (const char* pre : {"default", "", "no-such-pre"}) {
    vocabulary.pre = pre;
    const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto ids = (*tokenizer)->Encode("a", AddedTokenMode::kNone, false);
    EXPECT_EQ(ExitCodeOf(ids.status()), 4);
    EXPECT_THAT(std::string(ids.status().message()),
                HasSubstr("tokenizer.ggml.pre"));
    const std::vector<TokenId> known = {'h', 'i'};
    EXPECT_EQ((*tokenizer)->Decode(known, false).value(), "hi");
  }
}

TEST(Gguf, MergeOfNoTokenRefusesText) {
  GgufVocabulary vocabulary = ByteVocabulary();
  vocabulary.merges = {"a b"};
  const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = (*tokenizer)->Encode("a", AddedTokenMode::kNone, false);
  EXPECT_EQ(ExitCodeOf(ids.status()), 4);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("merge 0"));
}

TEST(Gguf, MissingByteRefusesText) {
  GgufVocabulary vocabulary = ByteVocabulary();
  vocabulary.tokens['e'] = "no byte";
  const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = (*tokenizer)->Encode("a", AddedTokenMode::kNone, false);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("byte 101"));
}

TEST(Gguf, TypesDecideWhatMatches) {
  GgufVocabulary vocabulary = ByteVocabulary();
  Add(vocabulary, "<control>", GgufTokenType::kControl);
  Add(vocabulary, "<user>", GgufTokenType::kUserDefined);
  Add(vocabulary, "[PAD258]", GgufTokenType::kUserDefined);
  Add(vocabulary, "[PAD259]", GgufTokenType::kUnused);
  vocabulary.bos_id = 256;
  const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto encode = [&](const char* text, AddedTokenMode mode) {
    return (*tokenizer)->Encode(text, mode, true).value();
  };
  EXPECT_THAT(encode("<control>", AddedTokenMode::kParseSpecial),
              ElementsAre(256));
  EXPECT_EQ(encode("<control>", AddedTokenMode::kPlain).size(), 9U);
  EXPECT_THAT(encode("<user>", AddedTokenMode::kPlain), ElementsAre(257));
  EXPECT_EQ(encode("<user>", AddedTokenMode::kNone).size(), 6U);
  EXPECT_EQ(encode("[PAD258]", AddedTokenMode::kParseSpecial).size(), 8U);
  EXPECT_EQ(encode("[PAD259]", AddedTokenMode::kParseSpecial).size(), 8U);
  EXPECT_TRUE((*tokenizer)->IsSpecial(256));
  EXPECT_FALSE((*tokenizer)->IsSpecial(257));
}

// A control token that is spelled like a word, or like two that merge, is no
// word: what users write does not become it.
TEST(Gguf, NoTextIsSpelledIntoAControlToken) {
  GgufVocabulary vocabulary = ByteVocabulary();
  Add(vocabulary, "turn", GgufTokenType::kControl);
  Add(vocabulary, "ab", GgufTokenType::kControl);
  Add(vocabulary, "cd", GgufTokenType::kNormal);
  vocabulary.merges = {"a b", "c d"};
  for (const char* pre : {"llama-bpe", "gpt-2"}) {
    vocabulary.pre = pre;
    const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (const auto mode : {AddedTokenMode::kNone, AddedTokenMode::kPlain}) {
      EXPECT_THAT((*tokenizer)->Encode("turn", mode, false).value(),
                  ElementsAre('t', 'u', 'r', 'n'));
      EXPECT_THAT((*tokenizer)->Encode("abcd", mode, false).value(),
                  ElementsAre('a', 'b', 258));
    }
    EXPECT_THAT((*tokenizer)
                    ->Encode("turn", AddedTokenMode::kParseSpecial, false)
                    .value(),
                ElementsAre(256));
  }
}

TEST(Gguf, Qwen2IsNormalised) {
  GgufVocabulary vocabulary = ByteVocabulary();
  vocabulary.pre = "qwen2";
  const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_THAT(*(*tokenizer)->Encode("e\u0301", AddedTokenMode::kNone, false),
              ElementsAre(0xC3, 0xA9));
}

TEST(Gguf, OtherModelsRefuseTextByName) {
  GgufVocabulary vocabulary = ByteVocabulary();
  vocabulary.model = "t5";
  const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
  ASSERT_TRUE(tokenizer.ok());
  const auto ids = (*tokenizer)->Encode("a", AddedTokenMode::kNone, false);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("'t5'"));
}

TEST(Gguf, BadScoresAreRefused) {
  GgufVocabulary vocabulary = ByteVocabulary();
  vocabulary.model = "llama";
  EXPECT_FALSE(Tokenizer::FromGguf(vocabulary, "m.gguf").ok());
  vocabulary.scores.assign(256, 0.0F);
  EXPECT_TRUE(Tokenizer::FromGguf(vocabulary, "m.gguf").ok());
  vocabulary.scores[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(Tokenizer::FromGguf(vocabulary, "m.gguf").ok());
}

}  // namespace
}  // namespace millrace::model
