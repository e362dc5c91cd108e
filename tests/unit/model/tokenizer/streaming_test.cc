// Pieces of a streaming decoder join to what Decode gives, and no piece ends
// inside a code point; random ids, which are mostly broken UTF-8, are fed.
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/tokenizer/utf8.h"
#include "tests/unit/model/tokenizer/tiny.h"

namespace millrace::model {
namespace {

TEST(Streaming, JoinsToDecode) {
  for (const char* file :
       {"tiny-bytebpe.json", "tiny-bytebpe.gguf", "tiny-flags.json",
        "tiny-spm.json", "tiny-spm.gguf"}) {
    const auto tokenizer = Tiny(file);
    std::mt19937_64 random(11);
    for (int round = 0; round < 400; ++round) {
      const bool skip = round % 2 == 0;
      // Small ids are bytes in all of these vocabularies.
      const uint64_t limit = round % 3 == 0 ? 300 : 600;
      std::vector<TokenId> ids(random() % 20);
      for (TokenId& id : ids) {
        id = static_cast<TokenId>(random() % limit);
      }
      StreamingDetokenizer stream(*tokenizer, skip);
      std::string joined;
      for (const TokenId id : ids) {
        const std::string piece = stream.Append(id);
        EXPECT_TRUE(IsWellFormed(piece));
        joined += piece;
      }
      const std::string rest = stream.Finish();
      EXPECT_TRUE(IsWellFormed(rest));
      joined += rest;
      const auto whole = tokenizer->Decode(ids, skip);
      ASSERT_TRUE(whole.ok()) << whole.status();
      ASSERT_EQ(joined, *whole) << file << " round " << round;
    }
  }
}

TEST(Streaming, TextIsNotHeldBackLongerThanNeeded) {
  const auto tokenizer = Tiny("tiny-bytebpe.json");
  const auto ids =
      tokenizer->Encode("ab\U0001F600c", AddedTokenMode::kNone, false);
  ASSERT_TRUE(ids.ok());
  StreamingDetokenizer stream(*tokenizer, false);
  std::string joined;
  for (const TokenId id : *ids) {
    joined += stream.Append(id);
  }
  EXPECT_EQ(joined, "ab\U0001F600c");
  EXPECT_EQ(stream.Finish(), "");
}

// SentencePiece puts a blank in front of a text and takes it off the first
// piece alone.
TEST(Streaming, LeadingBlankGoesOnce) {
  const auto tokenizer = Tiny("tiny-spm.json");
  const auto ids = tokenizer->Encode("do re", AddedTokenMode::kNone, false);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(tokenizer->Decode(*ids, false).value(), "do re");
  std::string bytes;
  for (const TokenId id : *ids) {
    bytes += tokenizer->TokenBytes(id);
  }
  EXPECT_EQ(bytes, " do re");
}

TEST(Streaming, TokenBytesJoinToTheText) {
  const auto tokenizer = Tiny("tiny-bytebpe.json");
  const std::string text = "na\u00efve \u4e2d\U0001F600 \xFF";
  const auto ids = tokenizer->Encode(text, AddedTokenMode::kNone, false);
  ASSERT_TRUE(ids.ok());
  std::string bytes;
  for (const TokenId id : *ids) {
    bytes += tokenizer->TokenBytes(id);
  }
  EXPECT_EQ(bytes, "na\u00efve \u4e2d\U0001F600 \uFFFD");
}

TEST(Streaming, IdsOutOfRangeAreRefusedByDecode) {
  const auto tokenizer = Tiny("tiny-spm.json");
  const std::vector<TokenId> ids[] = {
      {-1}, {static_cast<TokenId>(tokenizer->vocab_size())}, {INT32_MAX}};
  for (const auto& bad : ids) {
    EXPECT_EQ(tokenizer->Decode(bad, false).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(tokenizer->TokenBytes(bad[0]), "");
    EXPECT_FALSE(tokenizer->IsSpecial(bad[0]));
    EXPECT_FALSE(tokenizer->Piece(bad[0]).ok());
  }
}

}  // namespace
}  // namespace millrace::model
