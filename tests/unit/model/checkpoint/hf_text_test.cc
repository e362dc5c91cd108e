// Stop tokens, templates and sampling defaults come from the files of a Hugging
// Face folder in the order of their precedence; provoked by writing small
// folders that disagree in one place.
#include "model/checkpoint/hf_text.h"

#include <string>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace millrace::model {
namespace {

using ::millrace::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HfTextTest : public ::testing::Test {
 protected:
  absl::StatusOr<HfText> Read(const std::string& config) {
    const auto json = ParseJson(config, "config.json");
    EXPECT_TRUE(json.ok()) << json.status();
    const auto object = JsonObject::From(*json, "config.json");
    return ReadHfText(dir_.path(), *object, 300);
  }
  HfText MustRead(const std::string& config) {
    auto text = Read(config);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *std::move(text) : HfText();
  }
  TempDir dir_;
};

TEST_F(HfTextTest, EmptyFolderHasNothing) {
  const HfText text = MustRead("{}");
  EXPECT_THAT(text.stop_tokens, IsEmpty());
  EXPECT_FALSE(text.tokenizer_json_path.has_value());
  EXPECT_FALSE(text.chat_template.has_value());
  EXPECT_FALSE(text.generation_defaults.has_value());
}

TEST_F(HfTextTest, StopTokensAreTheUnion) {
  dir_.Write("generation_config.json",
             R"({"eos_token_id": [7, 5, 7], "bos_token_id": 3})");
  EXPECT_THAT(MustRead(R"({"eos_token_id": 9})").stop_tokens,
              ElementsAre(5, 7, 9));
  EXPECT_EQ(MustRead("{}").bos_token, 3);
  EXPECT_EQ(MustRead(R"({"bos_token_id": 4})").bos_token, 4);
}

TEST_F(HfTextTest, TurnTerminatorsStopToo) {
  dir_.Write("tokenizer.json",
             R"({"added_tokens": [{"id": 20, "content": "<|im_end|>"},
                                  {"id": 21, "content": "<|other|>"},
                                  {"id": 900, "content": "<|eot_id|>"}]})");
  EXPECT_THAT(MustRead(R"({"eos_token_id": 1})").stop_tokens,
              ElementsAre(1, 20));
  // The smaller file, where it lists tokens, is enough.
  dir_.Write("tokenizer_config.json",
             R"({"added_tokens_decoder": {"30": {"content": "<|eom_id|>"},
                                          "31": {"content": "<x>"},
                                          "bad": {"content": "<|eot_id|>"}}})");
  EXPECT_THAT(MustRead(R"({"eos_token_id": 1})").stop_tokens,
              ElementsAre(1, 30));
}

TEST_F(HfTextTest, DamagedTokenizerIsLeftToTheTokenizer) {
  dir_.Write("tokenizer.json", "{\"added_tokens\": [");
  EXPECT_TRUE(MustRead("{}").tokenizer_json_path.has_value());
}

TEST_F(HfTextTest, Templates) {
  dir_.Write("tokenizer_config.json", R"({"chat_template": "one"})");
  EXPECT_EQ(MustRead("{}").chat_template, "one");
  dir_.Write("tokenizer_config.json",
             R"({"chat_template": [{"name": "tool_use", "template": "a"},
                                   {"name": "default", "template": "b"}]})");
  EXPECT_EQ(MustRead("{}").chat_template, "b");
  dir_.Write("chat_template.jinja", "file wins");
  EXPECT_EQ(MustRead("{}").chat_template, "file wins");
}

TEST_F(HfTextTest, TokenTextsAndDefaults) {
  dir_.Write("tokenizer_config.json",
             R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  dir_.Write("generation_config.json",
             R"({"do_sample": true, "temperature": 0.6, "top_k": 20,
                 "top_p": 0.95})");
  const HfText text = MustRead("{}");
  EXPECT_EQ(text.bos_token_text, "<s>");
  EXPECT_EQ(text.eos_token_text, "</s>");
  ASSERT_TRUE(text.generation_defaults.has_value());
  EXPECT_TRUE(text.generation_defaults->do_sample);
  EXPECT_EQ(text.generation_defaults->temperature, 0.6);
  EXPECT_EQ(text.generation_defaults->top_k, 20);
  EXPECT_EQ(text.generation_defaults->min_p, std::nullopt);
}

TEST_F(HfTextTest, RefusesByFileAndKey) {
  const auto refused = [&](const char* file, const char* content,
                           const char* must_say) {
    TempDir fresh;
    const auto json = ParseJson("{}", "config.json");
    const auto object = JsonObject::From(*json, "config.json");
    fresh.Write(file, content);
    const auto text = ReadHfText(fresh.path(), *object, 300);
    ASSERT_FALSE(text.ok()) << content;
    EXPECT_EQ(ExitCodeOf(text.status()), 4);
    EXPECT_THAT(std::string(text.status().message()), HasSubstr(file));
    EXPECT_THAT(std::string(text.status().message()), HasSubstr(must_say));
  };
  refused("generation_config.json", "{", "JSON");
  refused("generation_config.json", R"({"eos_token_id": 300})", "eos_token_id");
  refused("generation_config.json", R"({"eos_token_id": ["1"]})",
          "eos_token_id");
  refused("generation_config.json", R"({"temperature": -1})", "temperature");
  refused("generation_config.json", R"({"top_p": 1.5})", "top_p");
  refused("tokenizer_config.json", R"({"chat_template": 7})", "chat_template");
  refused("tokenizer_config.json", R"({"chat_template": [{"name": "x"}]})",
          "chat_template");
  refused("tokenizer_config.json", R"({"bos_token": 5})", "bos_token");
  EXPECT_FALSE(Read(R"({"eos_token_id": -1})").ok());
}

}  // namespace
}  // namespace millrace::model
