// Patterns of tokenizer.json files and the rules that match the same.
#include <iterator>
#include <string>

#include "absl/strings/str_replace.h"
#include "model/tokenizer/char_class.h"
#include "model/tokenizer/pattern_rules.h"

namespace millrace::model {
namespace {

using Contractions = PatternRules::Contractions;
using Words = PatternRules::Words;

constexpr absl::string_view kNewlineTail = "\r\n";

constexpr PatternRules kGpt2 = {
    .contractions = Contractions::kExact,
    .words = Words::kAfterSpace,
    .letters = kLetter,
    .numbers_after_space = true,
    .symbols_out = kSpace | kLetter | kNumber,
    .spaces = true,
};

constexpr PatternRules kLlama3 = {
    .contractions = Contractions::kAnyCase,
    .words = Words::kAfterAny,
    .letters = kLetter,
    .not_lead = kLetter | kNumber,
    .numbers_max = 3,
    .symbols_out = kSpace | kLetter | kNumber,
    .symbols_tail = kNewlineTail,
    .newlines = true,
    .spaces = true,
};

constexpr PatternRules Qwen2() {
  PatternRules rules = kLlama3;
  rules.numbers_max = 1;
  return rules;
}

constexpr PatternRules Qwen35() {
  PatternRules rules = Qwen2();
  rules.letters = kLetter | kMark;
  rules.symbols_out = kSpace | kLetter | kMark | kNumber;
  return rules;
}

constexpr PatternRules Gpt4o() {
  PatternRules rules = kLlama3;
  rules.contractions = Contractions::kAfterWord;
  rules.words = Words::kCamelCase;
  rules.symbols_tail = "\r\n/";
  return rules;
}

constexpr PatternRules KimiK2() {
  PatternRules rules = Gpt4o();
  rules.han_runs = true;
  rules.symbols_tail = kNewlineTail;
  return rules;
}

constexpr PatternRules kDeepSeekWords = {
    .ascii_words = true,
    .words = Words::kAfterAny,
    .letters = kLetter | kMark,
    .not_lead = kLetter | kPunctuation | kSymbol,
    .symbols_in = kPunctuation | kSymbol,
    .symbols_tail = kNewlineTail,
    .newlines = true,
    .spaces = true,
};

struct Known {
  absl::string_view regex;
  PatternRules rules;
};

// Indexed by KnownPattern.
constexpr Known kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
     R"(|\s+(?!\S)|\s+)",
     kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Qwen2()},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
     R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Qwen35()},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Gpt4o()},
    {R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?)"
     R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?)"
     R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     KimiK2()},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
     R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kDeepSeekWords},
    {R"(\p{N}{1,3})", {.numbers_max = 3}},
    {R"(\p{N})", {.numbers_max = 1}},
};

static_assert(std::size(kKnown) ==
              static_cast<size_t>(KnownPattern::kOneDigit) + 1);

}  // namespace

std::optional<PatternRules> FindRules(absl::string_view regex) {
  // Some files have line ends themselves in their classes.
  const std::string spelled =
      absl::StrReplaceAll(regex, {{"\r", "\\r"}, {"\n", "\\n"}});
  for (const Known& known : kKnown) {
    if (known.regex == spelled) {
      return known.rules;
    }
  }
  return std::nullopt;
}

const PatternRules& RulesOf(KnownPattern pattern) {
  return kKnown[static_cast<size_t>(pattern)].rules;
}

}  // namespace millrace::model
