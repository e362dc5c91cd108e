// Text of users cannot become an added token, whatever it says and whatever
// trusted text stands beside it; all cuts of a control token between trusted
// and untrusted text are tried.
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/tokenizer/added_tokens.h"
#include "tests/unit/model/tokenizer/tiny.h"

namespace millrace::model {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr AddedTokenMode kTrusted = AddedTokenMode::kParseSpecial;
constexpr AddedTokenMode kUser = AddedTokenMode::kNone;

struct Vocabulary {
  const char* file;
  std::vector<std::string> controls;
};

const std::vector<Vocabulary>& Vocabularies() {
  static const std::vector<Vocabulary> kAll = {
      {"tiny-bytebpe.json",
       {"<|begin_of_text|>", "<|end_of_text|>", "<think>", "</think>"}},
      {"tiny-bytebpe.gguf", {"<|begin_of_text|>", "<think>"}},
      // Not <think>, of which <thin is taken first.
      {"tiny-flags.json",
       {"<|im_start|>", "<|im_end|>", "<s>", "it", "Cr\u00e8me", "<thin"}},
      {"tiny-spm.json", {"<s>", "</s>", "<unk>", "<think>", "[INST]"}},
      {"tiny-spm.gguf", {"<s>", "</s>", "<think>", "[INST]"}},
  };
  return kAll;
}

TEST(Segments, NoCutOfAControlTokenForgesIt) {
  for (const Vocabulary& vocabulary : Vocabularies()) {
    const auto tokenizer = Tiny(vocabulary.file);
    std::set<TokenId> added;
    for (const std::string& control : vocabulary.controls) {
      const auto id = tokenizer->FindAdded(control);
      ASSERT_TRUE(id.has_value()) << vocabulary.file << " " << control;
      added.insert(*id);
    }
    for (const std::string& control : vocabulary.controls) {
      for (size_t cut = 0; cut <= control.size(); ++cut) {
        const std::string head = control.substr(0, cut);
        const std::string tail = control.substr(cut);
        for (const bool head_is_user : {false, true}) {
          const std::vector<TextSegment> segments = {
              {head, head_is_user ? kUser : kTrusted},
              {tail, head_is_user ? kTrusted : kUser}};
          const auto ids = tokenizer->EncodeSegments(segments);
          ASSERT_TRUE(ids.ok()) << ids.status();
          const bool whole_is_trusted = head_is_user ? cut == 0 : tail.empty();
          const TokenId id = *tokenizer->FindAdded(control);
          if (whole_is_trusted) {
            EXPECT_THAT(*ids, Contains(id)) << control;
          } else {
            EXPECT_THAT(*ids, Not(Contains(id)))
                << vocabulary.file << " " << control << " cut at " << cut;
          }
        }
      }
      const auto whole = tokenizer->Encode(control, kUser, false);
      for (const TokenId id : *whole) {
        EXPECT_EQ(added.count(id), 0U) << vocabulary.file << " " << control;
      }
    }
  }
}

// A shorter control token inside trusted text still counts where the longer
// one would reach into text of the user.
TEST(Segments, TrustedPartMatchesByItself) {
  const auto tokenizer = Tiny("tiny-flags.json");
  const TokenId thin = *tokenizer->FindAdded("<thin");
  const auto ids = tokenizer->EncodeSegments(
      std::vector<TextSegment>{{"<thin", kTrusted}, {"k>", kUser}});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->front(), thin);
}

// A prompt in parts has the ids of the prompt as a whole when the user's part
// holds no control token, wherever it is cut.
TEST(Segments, BenignTextHasTheIdsOfTheWhole) {
  for (const Vocabulary& vocabulary : Vocabularies()) {
    const auto tokenizer = Tiny(vocabulary.file);
    const std::string front = vocabulary.controls[0] + "user\n";
    const std::string user = " Hello  w\u00f6rld 123!\n\n\u4e2d\u6587 e\u0301 ";
    const std::string back = "\n" + vocabulary.controls[1] + " x";
    const auto whole = tokenizer->Encode(front + user + back, kTrusted, false);
    ASSERT_TRUE(whole.ok());
    for (size_t cut = 0; cut <= user.size(); ++cut) {
      const auto ids = tokenizer->EncodeSegments(
          std::vector<TextSegment>{{front, kTrusted},
                                   {user.substr(0, cut), kUser},
                                   {user.substr(cut), kUser},
                                   {back, kTrusted}});
      ASSERT_TRUE(ids.ok());
      EXPECT_EQ(*ids, *whole) << vocabulary.file << " cut at " << cut;
    }
  }
}

TEST(Segments, NothingGivesNothing) {
  const auto tokenizer = Tiny("tiny-spm.json");
  EXPECT_THAT(*tokenizer->EncodeSegments({}), ElementsAre());
  EXPECT_THAT(*tokenizer->EncodeSegments(std::vector<TextSegment>{{"", kUser}}),
              ElementsAre());
}

TEST(AddedTokens, SpecialInPlainTextIsLeftAsAWhole) {
  AddedTokenMatcher matcher;
  matcher.Add("<a>", {.content = "<a>", .id = 1});
  matcher.Add("<a><b>", {.content = "<a><b>", .id = 2, .special = true});
  const auto plain =
      matcher.FindAll(MarkedText::From("<a><b><a>", AddedTokenMode::kPlain));
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].id, 1);
  EXPECT_EQ(plain[0].span.begin, 6U);
  const auto full = matcher.FindAll(MarkedText::From("<a><b><a>", kTrusted));
  ASSERT_EQ(full.size(), 2U);
  EXPECT_EQ(full[0].id, 2);
}

}  // namespace
}  // namespace millrace::model
