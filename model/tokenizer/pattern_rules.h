#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace millrace::model {

// The pre-tokenizer patterns in use are one family of alternatives, tried in
// the order of these members. Matched by hand: a few looks at each character
// whatever the text, where a backtracking engine can be made to stall.
struct PatternRules {
  enum class Contractions {
    kNone,
    kExact,      // 's|'t|'re|'ve|'m|'ll|'d
    kAnyCase,    // (?i:...), first alternative
    kAfterWord,  // (?i:...)? behind a word of kCamelCase
  };
  enum class Words {
    kNone,
    kAfterSpace,  // " ?[letters]+"
    kAfterAny,    // "[^\r\n{not_lead}]?[letters]+"
    // "[^..]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+", then
    // the same with + and *
    kCamelCase,
  };

  bool han_runs = false;     // [\p{Han}]+ first, and no Han in words
  bool ascii_words = false;  // one ASCII punctuation mark and [A-Za-z]+
  Contractions contractions = Contractions::kNone;
  Words words = Words::kNone;
  uint32_t letters = 0;   // classes of kAfterSpace and kAfterAny
  uint32_t not_lead = 0;  // classes that may not lead a word
  // \p{N}{1,numbers_max}; 0: no such alternative.
  int numbers_max = 0;
  bool numbers_after_space = false;  // " ?\p{N}+"
  // " ?[symbols]+[tail]*": characters in one of symbols_in, or, where that is
  // 0, in none of symbols_out. Both 0: no such alternative.
  uint32_t symbols_in = 0;
  uint32_t symbols_out = 0;
  absl::string_view symbols_tail{};
  bool newlines = false;  // \s*[\r\n]+
  bool spaces = false;    // \s+(?!\S)|\s+
};

// End of the match that starts exactly at `at`; `at` when there is none.
size_t MatchRules(const PatternRules& rules, absl::string_view text, size_t at);

// The rules equal to a regex as tokenizer.json files spell it.
std::optional<PatternRules> FindRules(absl::string_view regex);

// The patterns in use, named after the model that brought each.
enum class KnownPattern {
  kGpt2,  // also what ByteLevel implies
  kLlama3,
  kQwen2,
  kQwen35,
  kGpt4o,
  kKimiK2,
  kDeepSeekV3Words,  // the last of its three splits
  kThreeDigits,
  kOneDigit,
};
const PatternRules& RulesOf(KnownPattern pattern);

}  // namespace millrace::model
