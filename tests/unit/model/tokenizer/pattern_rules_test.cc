// The hand-written matchers cut random texts exactly like PCRE2 with the regex
// they stand for; a wrong class, order of alternatives or give-back differs.
#include "model/tokenizer/pattern_rules.h"

#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/regex.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

constexpr const char* kRegexes[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"(\p{N}{1,3})",
    R"(\p{N})",
};

// Kimi's pattern, and the same without intersections for PCRE2.
constexpr const char* kKimi =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kKimiForPcre2 =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// One or more of every class that a pattern tells apart, contractions, and
// characters that are easily put in the wrong class.
constexpr char32_t kCharacters[] = {
    U' ',    U' ',   U'\n',  U'\r',  U'\t',  U'a',   U's',   U't',
    U'r',    U'e',   U'l',   U'v',   U'm',   U'D',   U'S',   U'L',
    U'A',    U'Z',   U'1',   U'2',   U'\'',  U'\'',  U'!',   U'/',
    U'$',    U'~',   0x17F,  0xE9,   0x1C5,  0x2B0,  0xAA,   0x301,
    0x5D0,   0x4E2D, 0x3005, 0x3007, 0x3042, 0x3002, 0x661,  0xBD,
    0x2160,  0xA0,   0x85,   0x3000, 0x200B, 0x1C,   0x2028, 0xFEFF,
    0x1F600, 0x200D, 0xE000, 0x0,    0xFFFD, 0x20AC, 0x2581, 0x903,
};

std::string RandomText(std::mt19937_64& random) {
  std::string text;
  const uint64_t length = random() % 24;
  char32_t last = U'a';
  for (uint64_t i = 0; i < length; ++i) {
    // Runs are likelier than in a text of independent characters.
    if (random() % 3 != 0) {
      last = kCharacters[random() % std::size(kCharacters)];
    }
    AppendUtf8(last, &text);
  }
  return text;
}

std::vector<Span> FindAll(const Pattern& pattern, absl::string_view text) {
  std::vector<Span> out;
  EXPECT_TRUE(pattern.FindAll(text, {0, text.size()}, &out).ok());
  return out;
}

void Compare(absl::string_view regex, absl::string_view for_pcre2,
             uint64_t seed) {
  const auto rules = FindRules(regex);
  ASSERT_TRUE(rules.has_value()) << regex;
  const auto by_hand = RulesPattern(*rules);
  const auto by_pcre2 = Pcre2Pattern(for_pcre2, "test");
  ASSERT_TRUE(by_pcre2.ok()) << by_pcre2.status();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 8000; ++i) {
    const std::string text = RandomText(random);
    ASSERT_EQ(FindAll(*by_hand, text), FindAll(**by_pcre2, text))
        << absl::CHexEscape(text) << "\nseed " << seed << " of " << regex;
  }
}

TEST(PatternRules, CutLikePcre2) {
  for (const char* regex : kRegexes) {
    Compare(regex, regex, 20240611);
  }
  Compare(kKimi, kKimiForPcre2, 20240611);
}

TEST(PatternRules, WhiteSpaceAndHanAreRewrittenForPcre2) {
  // U+180E is no white space, and the ideographic stop is no Han.
  const auto space = Pcre2Pattern(R"(\s+|[\s]|\p{Han})", "test");
  ASSERT_TRUE(space.ok());
  EXPECT_TRUE(FindAll(**space, "\u180e\u3002\u200b").empty());
  EXPECT_EQ(FindAll(**space, "\u2003\u4e2d").size(), 2U);
  const auto not_space = Pcre2Pattern(R"(\S)", "test");
  EXPECT_EQ(FindAll(**not_space, "\u180e\u3000").size(), 1U);
}

TEST(PatternRules, RegexThatCannotWorkIsAnError) {
  EXPECT_FALSE(Pcre2Pattern("(", "test").ok());
  EXPECT_FALSE(Pcre2Pattern("[a&&[^b]]", "test").ok());
  EXPECT_FALSE(Pcre2Pattern(R"(\C)", "test").ok());
  EXPECT_FALSE(Pcre2Pattern(std::string(20000, 'a'), "test").ok());
}

TEST(PatternRules, ExponentialRegexEndsWithAnError) {
  const auto pattern = Pcre2Pattern("(a+)+$", "test");
  ASSERT_TRUE(pattern.ok());
  std::vector<Span> out;
  const std::string text = std::string(60, 'a') + "b";
  const absl::Status status = (*pattern)->FindAll(text, {0, text.size()}, &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace millrace::model
