// A prompt goes to the tokenizer in segments unless special tokens are to be
// parsed, and input is completed as templates expect; provoked with a
// tokenizer that only writes down what it was asked.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "gtest/gtest.h"
#include "tests/unit/model/chat/rendering.h"

namespace millrace::model {
namespace {

class RecordingTokenizer final : public Tokenizer {
 public:
  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text,
                                              AddedTokenMode mode,
                                              bool add_special) const override {
    asked_ = absl::StrCat("text ", text, mode == AddedTokenMode::kParseSpecial,
                          add_special);
    return std::vector<TokenId>{1};
  }
  absl::StatusOr<std::vector<TokenId>> EncodeSegments(
      absl::Span<const TextSegment> segments) const override {
    asked_ = "segments";
    for (const TextSegment& segment : segments) {
      absl::StrAppend(&asked_, " [", segment.text, "]",
                      segment.mode == AddedTokenMode::kNone ? "" : "!");
    }
    return std::vector<TokenId>{2};
  }
  absl::StatusOr<std::string> Decode(absl::Span<const TokenId> /*ids*/,
                                     bool /*skip*/) const override {
    return "";
  }
  absl::StatusOr<std::string> Piece(TokenId /*id*/) const override {
    return "";
  }
  std::string TokenBytes(TokenId /*id*/) const override { return ""; }
  int64_t vocab_size() const override { return 3; }
  bool IsSpecial(TokenId /*id*/) const override { return false; }
  std::optional<TokenId> FindAdded(absl::string_view /*text*/) const override {
    return std::nullopt;
  }
  std::vector<TokenId> Prefix() const override { return {0}; }

  mutable std::string asked_;
};

Json OneMessage() {
  boost::json::object message;
  message["content"] = "hi";
  message["reasoning"] = "hm";
  message["tool_calls"] = nullptr;
  boost::json::object input;
  input["messages"] = boost::json::array{message};
  return input;
}

TEST(Prompt, GoesInSegments) {
  const RecordingTokenizer tokenizer;
  const auto compiled =
      ChatTemplate::Compile("{{ bos_token }}{{ messages[0].content }}", "t");
  ASSERT_TRUE(compiled.ok());
  Json input = OneMessage();
  CompleteInput("<s>", "</s>", input);
  EXPECT_TRUE(
      BuildPrompt(tokenizer, **compiled, input, ReferenceTime(), false).ok());
  EXPECT_EQ(tokenizer.asked_, "segments [<s>]! [hi]");
  EXPECT_TRUE(
      BuildPrompt(tokenizer, **compiled, input, ReferenceTime(), true).ok());
  EXPECT_EQ(tokenizer.asked_, "text <s>hi10");
}

TEST(Prompt, InputIsCompletedAsTemplatesExpect) {
  Json input = OneMessage();
  CompleteInput("<s>", "", input);
  EXPECT_EQ(RenderText("{{ tools is none }}{{ documents is none }}{{ bos_token "
                       "}}{{ eos_token is defined }}{{ messages[0] }}",
                       input)
                .value(),
            "TrueTrue<s>False{'thinking': 'hm', 'content': 'hi', 'reasoning': "
            "'hm', 'reasoning_content': 'hm'}");
}

TEST(Prompt, AModelWithoutATemplateIsNamed) {
  const absl::Status status = NoChatTemplate("some.gguf");
  EXPECT_EQ(ObjectOf(status), "some.gguf");
  EXPECT_NE(HintOf(status).find("--raw"), std::string::npos);
}

}  // namespace
}  // namespace millrace::model
