// A GGUF file is read as written, and every wrong count, length, type or offset
// is refused with the key or tensor named; provoked by writing one wrong field
// at a time into a small valid file.
#include "model/checkpoint/gguf_file.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/gguf_vocabulary_reader.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"

namespace millrace::model {
namespace {

using ::millrace::testing::GgufString;
using ::millrace::testing::GgufU32;
using ::millrace::testing::GgufU64;
using ::millrace::testing::GgufWriter;
using ::millrace::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GgufWriter Valid() {
  GgufWriter writer;
  writer.SetString("general.architecture", "llama");
  writer.SetU32("llama.block_count", 2);
  writer.SetF32("llama.rope.freq_base", 5e5f);
  writer.SetString("tokenizer.ggml.model", "gpt2");
  writer.SetStrings("tokenizer.ggml.tokens", {"a", "b", "", "ab"});
  writer.SetF32s("tokenizer.ggml.scores", {0, -1, -2, -3});
  writer.SetI32s("tokenizer.ggml.token_type", {1, 3, 4, 0});
  writer.SetStrings("tokenizer.ggml.merges", {"a b"});
  writer.SetU32("tokenizer.ggml.eos_token_id", 3);
  writer.SetU32("tokenizer.ggml.padding_token_id", 4);
  writer.SetBool("tokenizer.ggml.add_bos_token", true);
  writer.AddTensor("first", {64, 2}, 8, std::string(4 * 34, 'x'));
  writer.AddTensor("second", {5}, 0, std::string(20, 'y'));
  return writer;
}

absl::StatusOr<std::unique_ptr<GgufFile>> OpenBytes(const std::string& bytes) {
  TempDir dir;
  return GgufFile::Open(dir.Write("m.gguf", bytes));
}

TEST(GgufFile, ReadsWhatWasWritten) {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter writer = Valid();
    writer.version = version;
    const std::string bytes = writer.Build();
    const auto file = OpenBytes(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    const GgufFile& gguf = **file;
    EXPECT_EQ(gguf.Integer("llama.block_count", 1, 10).value(), 2);
    EXPECT_EQ(gguf.Number("llama.rope.freq_base", 1, 1e9).value(), 5e5);
    EXPECT_EQ(gguf.String("general.architecture").value(), "llama");
    EXPECT_EQ(gguf.IntegerOr("absent", 1, 10, 7).value(), 7);
    EXPECT_THAT(gguf.Floats("tokenizer.ggml.scores").value(),
                ElementsAre(0, -1, -2, -3));
    const GgufTensor* first = gguf.FindTensor("first");
    const GgufTensor* second = gguf.FindTensor("second");
    ASSERT_TRUE(first != nullptr && second != nullptr);
    EXPECT_THAT(first->ne, ElementsAre(64, 2));
    EXPECT_EQ(first->bytes, 4 * 34);
    EXPECT_EQ(bytes.substr(static_cast<size_t>(first->offset), 136),
              std::string(136, 'x'));
    EXPECT_EQ(bytes.substr(static_cast<size_t>(second->offset), 20),
              std::string(20, 'y'));
  }
}

TEST(GgufFile, TypedAccessNamesTheKey) {
  const auto file = OpenBytes(Valid().Build());
  ASSERT_TRUE(file.ok());
  const GgufFile& gguf = **file;
  for (const absl::Status& status :
       {gguf.Integer("llama.block_count", 3, 10).status(),
        gguf.String("llama.block_count").status(),
        gguf.Strings("llama.block_count").status(),
        gguf.BoolOr("llama.block_count", true).status(),
        gguf.Floats("llama.block_count").status(),
        gguf.Integers("llama.block_count", 0, 5).status()}) {
    EXPECT_EQ(ExitCodeOf(status), 4);
    EXPECT_THAT(std::string(status.message()), HasSubstr("llama.block_count"));
  }
  EXPECT_FALSE(gguf.Integer("general.architecture", 0, 9).ok());
  EXPECT_FALSE(gguf.Integer("llama.rope.freq_base", 0, 1 << 30).ok());
  EXPECT_FALSE(gguf.Integers("tokenizer.ggml.tokens", 0, 9).ok());
  EXPECT_FALSE(gguf.Floats("tokenizer.ggml.tokens").ok());
}

struct Wrong {
  const char* name;
  std::function<void(GgufWriter&)> change;
  const char* must_say;
};

TEST(GgufFile, RefusesEveryWrongField) {
  const std::vector<Wrong> cases = {
      {"magic", [](auto& w) { w.magic = "GGUX"; }, "magic"},
      {"version", [](auto& w) { w.version = 4; }, "version"},
      {"version 1", [](auto& w) { w.version = 1; }, "version"},
      {"big", [](auto& w) { w.version = 0x03000000; }, "big-endian"},
      {"tensors", [](auto& w) { w.num_tensors = UINT64_MAX; }, "tensors"},
      {"one more", [](auto& w) { w.num_tensors = 3; }, "tensor"},
      {"keys", [](auto& w) { w.num_keys = UINT64_MAX; }, "keys"},
      {"keys wrap", [](auto& w) { w.num_keys = UINT64_MAX / 13; }, "keys"},
      {"value type", [](auto& w) { w.SetRaw("k", 13, ""); }, "'k'"},
      {"bool", [](auto& w) { w.SetRaw("k", 7, "\x02"); }, "'k'"},
      {"string", [](auto& w) { w.SetRaw("k", 8, GgufU64(1ull << 40)); }, "'k'"},
      {"string wraps", [](auto& w) { w.SetRaw("k", 8, GgufU64(-16)); }, "'k'"},
      {"array",
       [](auto& w) { w.SetRaw("k", 9, GgufU32(12) + GgufU64(1ull << 61)); },
       "'k'"},
      {"arrays", [](auto& w) { w.SetRaw("k", 9, GgufU32(9) + GgufU64(0)); },
       "'k'"},
      {"twice",
       [](auto& w) {
         w.more_keys = GgufString("llama.block_count") + GgufU32(4) + "1234";
         w.num_keys = 12;
       },
       "twice"},
      {"alignment 0", [](auto& w) { w.SetU32("general.alignment", 0); },
       "general.alignment"},
      {"alignment 3", [](auto& w) { w.SetU32("general.alignment", 3); },
       "general.alignment"},
      {"dims 0", [](auto& w) { w.Tensor("first").ne = {}; }, "'first'"},
      {"dims 5",
       [](auto& w) {
         w.Tensor("first").ne = {64, 2, 1, 1, 1};
       },
       "'first'"},
      {"dims huge", [](auto& w) { w.Tensor("first").dimensions = UINT32_MAX; },
       "'first'"},
      {"negative",
       [](auto& w) {
         w.Tensor("first").ne = {-64, -2};
       },
       "'first'"},
      {"zero",
       [](auto& w) {
         w.Tensor("first").ne = {64, 0};
       },
       "'first'"},
      {"overflow",
       [](auto& w) {
         w.Tensor("first").ne = {1ll << 62, 8};
       },
       "'first'"},
      {"overflow 4",
       [](auto& w) {
         w.Tensor("first").ne = {1ll << 32, 1ll << 32, 1ll << 32, 1ll << 32};
       },
       "'first'"},
      {"type", [](auto& w) { w.Tensor("first").type = 99; }, "type 99"},
      {"removed type", [](auto& w) { w.Tensor("first").type = 4; }, "type 4"},
      {"block",
       [](auto& w) {
         w.Tensor("first").ne = {48, 2};
       },
       "'first'"},
      {"misaligned", [](auto& w) { w.Tensor("second").offset = 8; },
       "'second'"},
      {"beyond", [](auto& w) { w.Tensor("second").offset = 1ull << 40; },
       "'second'"},
      {"wraps", [](auto& w) { w.Tensor("second").offset = -32; }, "'second'"},
      {"overlap", [](auto& w) { w.Tensor("second").offset = 32; }, "overlaps"},
      {"same name", [](auto& w) { w.Tensor("second").name = "first"; },
       "twice"},
      {"no name", [](auto& w) { w.Tensor("second").name = ""; }, "no name"},
  };
  for (const Wrong& wrong : cases) {
    GgufWriter writer = Valid();
    wrong.change(writer);
    const auto file = OpenBytes(writer.Build());
    ASSERT_FALSE(file.ok()) << wrong.name;
    EXPECT_EQ(ExitCodeOf(file.status()), 4) << wrong.name;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(wrong.must_say))
        << wrong.name;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("m.gguf"));
  }
}

TEST(GgufFile, RefusesEveryTruncation) {
  const std::string bytes = Valid().Build();
  // The padding behind the last tensor may be missing.
  const size_t needed = bytes.size() - 12;
  TempDir dir;
  for (size_t size = 0; size < needed; ++size) {
    const auto file =
        GgufFile::Open(dir.Write("m.gguf", bytes.substr(0, size)));
    ASSERT_FALSE(file.ok()) << size;
    EXPECT_EQ(ExitCodeOf(file.status()), 4) << size;
  }
  EXPECT_TRUE(OpenBytes(bytes.substr(0, needed)).ok());
}

TEST(GgufVocabulary, IsReadWithoutTensors) {
  GgufWriter writer = Valid();
  writer.num_tensors = 1u << 30;
  writer.tensors.clear();
  TempDir dir;
  const auto vocabulary = ReadGgufVocabulary(dir.Write("m", writer.Build()));
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_THAT(vocabulary->tokens, ElementsAre("a", "b", "", "ab"));
  EXPECT_THAT(vocabulary->merges, ElementsAre("a b"));
  EXPECT_THAT(vocabulary->types,
              ElementsAre(GgufTokenType::kNormal, GgufTokenType::kControl,
                          GgufTokenType::kUserDefined, GgufTokenType::kNormal));
  EXPECT_EQ(vocabulary->eos_id, 3);
  EXPECT_EQ(vocabulary->padding_id, std::nullopt) << "out of range";
  EXPECT_EQ(vocabulary->bos_id, std::nullopt);
  EXPECT_EQ(vocabulary->add_bos, true);
  EXPECT_EQ(vocabulary->add_eos, std::nullopt);
}

TEST(GgufVocabulary, RefusesWhatDoesNotFitTogether) {
  const std::vector<Wrong> cases = {
      {"tokens", [](auto& w) { w.Remove("tokenizer.ggml.tokens"); },
       "tokenizer.ggml.tokens"},
      {"types",
       [](auto& w) {
         w.SetI32s("tokenizer.ggml.token_type", {1, 1, 1});
       },
       "tokenizer.ggml.token_type"},
      {"type 7",
       [](auto& w) {
         w.SetI32s("tokenizer.ggml.token_type", {1, 1, 1, 7});
       },
       "tokenizer.ggml.token_type"},
      {"scores", [](auto& w) { w.SetF32s("tokenizer.ggml.scores", {1}); },
       "tokenizer.ggml.scores"},
      {"eos", [](auto& w) { w.SetU32("tokenizer.ggml.eos_token_id", 4); },
       "tokenizer.ggml.eos_token_id"},
      {"flag", [](auto& w) { w.SetU32("tokenizer.ggml.add_bos_token", 1); },
       "tokenizer.ggml.add_bos_token"},
  };
  for (const Wrong& wrong : cases) {
    GgufWriter writer = Valid();
    wrong.change(writer);
    const auto file = OpenBytes(writer.Build());
    ASSERT_TRUE(file.ok()) << wrong.name;
    EXPECT_TRUE(HasGgufVocabulary(**file));
    const auto vocabulary = GgufVocabularyOf(**file);
    ASSERT_FALSE(vocabulary.ok()) << wrong.name;
    EXPECT_THAT(std::string(vocabulary.status().message()),
                HasSubstr(wrong.must_say));
  }
}

}  // namespace
}  // namespace millrace::model
