// Text comes out as if the whole answer had been searched at once, however it
// is cut, and never a part of a stop string. Provoked by random texts over two
// letters, in which stop strings overlap and repeat.

#include "coordinator/api/stop_matcher.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

std::string RandomText(std::mt19937& generator, size_t size_max) {
  std::string text(1 + generator() % size_max, 'a');
  for (char& letter : text) {
    letter = generator() % 2 == 0 ? 'a' : 'b';
  }
  return text;
}

TEST(StopMatcher, EqualsASearchOfTheWholeText) {
  constexpr uint32_t kSeed = 20240607;
  SCOPED_TRACE(kSeed);
  std::mt19937 generator(kSeed);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(1 + generator() % 4);
    for (std::string& stop : stops) {
      stop = RandomText(generator, 6);
    }
    const std::string text = RandomText(generator, 30);
    size_t first = std::string::npos;
    for (const std::string& stop : stops) {
      first = std::min(first, text.find(stop));
    }
    StopMatcher matcher(stops);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t piece = 1 + generator() % 4;
      out += matcher.Append(text.substr(at, piece));
      ASSERT_TRUE(text.substr(0, first).starts_with(out));
      at += piece;
    }
    out += matcher.Finish();
    ASSERT_EQ(out, text.substr(0, first));
    ASSERT_EQ(matcher.matched(), first != std::string::npos);
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStopString) {
  StopMatcher matcher({"end", "###"});
  EXPECT_EQ(matcher.Append("the e"), "the ");
  EXPECT_EQ(matcher.Append("n"), "");
  EXPECT_EQ(matcher.Append("ter"), "enter");
  EXPECT_EQ(matcher.Append("##"), "");
  EXPECT_EQ(matcher.Append("x#"), "##x");
  EXPECT_EQ(matcher.Append("##tail"), "");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.Append("more"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcher, GivesTheEarlierOfTwoThatOverlap) {
  StopMatcher matcher({"bc", "abcd"});
  EXPECT_EQ(matcher.Append("xabc"), "x");
  EXPECT_FALSE(matcher.matched());
  EXPECT_EQ(matcher.Append("d"), "");
  EXPECT_TRUE(matcher.matched());
  StopMatcher shorter({"bc", "abcd"});
  EXPECT_EQ(shorter.Append("xabce"), "xa");
  EXPECT_TRUE(shorter.matched());
  StopMatcher ended({"bc", "abcd"});
  EXPECT_EQ(ended.Append("xabc"), "x");
  EXPECT_EQ(ended.Finish(), "a");
  EXPECT_TRUE(ended.matched());
}

}  // namespace
}  // namespace millrace::coordinator
