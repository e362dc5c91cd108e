// The pieces of an answer join to its text, scores stay in step with it, and
// nothing behind a stop string or of an end token shows. Provoked by characters
// of several tokens, stop strings across tokens and answers cut anywhere.

#include "coordinator/api/completion_session.h"

#include <string>
#include <vector>

#include "coordinator/api/utf8.h"
#include "gtest/gtest.h"
#include "tests/clients/stub/fake_tokenizer.h"

namespace millrace::coordinator {
namespace {

constexpr int32_t kWord = FakeTokenizer::kFirstWord;

struct Answer {
  std::string text;
  std::string score_text;
  std::string score_bytes;
  size_t num_scores = 0;
  std::string finish;
  int64_t num_tokens = 0;
};

void Take(const CompletionSession::Delta& delta, Answer& answer) {
  answer.text += delta.text;
  for (const TokenScore& score : delta.scores) {
    answer.score_text += score.text;
    answer.score_bytes += score.bytes;
    ++answer.num_scores;
  }
  // Scores never run ahead of the text.
  EXPECT_TRUE(answer.text.starts_with(answer.score_text));
}

class CompletionSessionTest : public testing::Test {
 protected:
  Answer Run(const std::vector<int32_t>& tokens, FinishReason reason,
             std::vector<std::string> stop = {}) const {
    CompletionSession session({.tokenizer = &tokenizer_,
                               .stop = std::move(stop),
                               .end_tokens = {FakeTokenizer::kTurnEnd},
                               .want_logprobs = true});
    Answer answer;
    for (const int32_t token : tokens) {
      TokenEvent event;
      event.token = token;
      Take(session.OnToken(event), answer);
      if (session.stopped()) {
        break;
      }
    }
    Take(session.OnFinish(reason), answer);
    answer.finish = std::string(session.finish_reason());
    answer.num_tokens = session.num_tokens();
    return answer;
  }

  std::string Text(const std::vector<int32_t>& tokens) const {
    return *tokenizer_.Decode(tokens, true);
  }

  const FakeTokenizer tokenizer_;
};

TEST_F(CompletionSessionTest, JoinsToTheDecodedText) {
  const std::vector<int32_t> tokens = {
      kWord, 0xF0, 0x9F, 0x99, 0x82, kWord + 1, kWord + 2, kWord + 3, 'x'};
  const Answer answer = Run(tokens, FinishReason::kLength);
  EXPECT_EQ(answer.text, Text(tokens));
  EXPECT_EQ(answer.score_text, answer.text);
  EXPECT_EQ(answer.score_bytes, answer.text);
  EXPECT_EQ(answer.num_scores, tokens.size());
  EXPECT_EQ(answer.finish, "length");
}

TEST_F(CompletionSessionTest, NeverShowsPartOfACharacter) {
  CompletionSession session({.tokenizer = &tokenizer_});
  for (const int32_t byte : {0xE6, 0x97}) {
    TokenEvent event;
    event.token = byte;
    EXPECT_EQ(session.OnToken(event).text, "");
  }
  const std::string tail = session.OnFinish(FinishReason::kLength).text;
  EXPECT_TRUE(tail.empty() || tail == "\xEF\xBF\xBD") << tail;
}

TEST_F(CompletionSessionTest, HidesTheEndToken) {
  const Answer answer =
      Run({kWord, kWord + 1, FakeTokenizer::kTurnEnd}, FinishReason::kStop);
  EXPECT_EQ(answer.text, Text({kWord, kWord + 1}));
  EXPECT_EQ(answer.score_bytes, answer.text);
  EXPECT_EQ(answer.num_scores, 3U);
  EXPECT_EQ(answer.num_tokens, 3);
  EXPECT_EQ(answer.finish, "stop");
}

TEST_F(CompletionSessionTest, CutsAtAStopStringAnywhere) {
  const std::vector<int32_t> tokens = {kWord, kWord + 1, kWord + 2, kWord + 80,
                                       kWord + 99};
  const std::string text = Text(tokens);
  for (size_t at = 0; at < text.size(); ++at) {
    for (size_t size = 1; at + size <= text.size(); ++size) {
      const std::string stop = text.substr(at, size);
      const Answer answer = Run(tokens, FinishReason::kLength, {stop});
      const std::string want = text.substr(0, text.find(stop));
      ASSERT_EQ(answer.text, want) << stop;
      ASSERT_EQ(answer.score_text, want) << stop;
      ASSERT_EQ(answer.finish, "stop");
    }
  }
}

TEST_F(CompletionSessionTest, DeliversWhatWasHeldBackForNothing) {
  const std::vector<int32_t> tokens = {kWord, 'a', 'b'};
  const Answer answer = Run(tokens, FinishReason::kLength, {"abc"});
  EXPECT_EQ(answer.text, Text(tokens));
  EXPECT_EQ(answer.finish, "length");
}

TEST_F(CompletionSessionTest, CountsTokensUpToTheStopString) {
  CompletionSession session({.tokenizer = &tokenizer_, .stop = {"b"}});
  for (const int32_t token : {'a', 'b', 'c'}) {
    TokenEvent event;
    event.token = token;
    session.OnToken(event);
  }
  EXPECT_EQ(session.num_tokens(), 2);
}

TEST_F(CompletionSessionTest, WorksWithoutATokenizer) {
  CompletionSession session({.want_logprobs = true});
  TokenEvent event;
  event.token = 7;
  EXPECT_EQ(session.OnToken(event).scores.size(), 1U);
  EXPECT_EQ(session.OnFinish(FinishReason::kLength).text, "");
  EXPECT_EQ(session.tokens(), std::vector<int32_t>{7});
}

TEST_F(CompletionSessionTest, PromptScoresJoinToThePrompt) {
  const std::vector<int32_t> prompt = {0xF0, 0x9F, 0x99, 0x82, kWord};
  const auto scores =
      PromptScores(&tokenizer_, prompt,
                   {{.position = 4, .logprob = -1, .top = {}, .logits_crc = 0},
                    {.position = 5, .logprob = 0, .top = {}, .logits_crc = 0}},
                   true);
  std::string text;
  for (const TokenScore& score : scores) {
    text += score.text;
  }
  EXPECT_EQ(text, Text(prompt));
  EXPECT_FALSE(scores[0].has_logprob);
  EXPECT_TRUE(scores[4].has_logprob);
}

TEST(Utf8, ReplacesMaximalIllFormedParts) {
  EXPECT_EQ(WellFormed("a\xE6\x97z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(WellFormed("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(WellFormed("\xF0\x9F\x99"), "\xEF\xBF\xBD");
  EXPECT_EQ(WellFormed("\xC0\xAF\xF5"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_TRUE(IsWellFormed("\xF0\x9F\x99\x82 \xC3\xA9"));
  EXPECT_FALSE(IsWellFormed("\xF4\x90\x80\x80"));
  EXPECT_EQ(CodePoints("\xF0\x9F\x99\x82 \xC3\xA9"), 3);
}

}  // namespace
}  // namespace millrace::coordinator
