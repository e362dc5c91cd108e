#include "model/tokenizer/pattern_rules.h"

#include "model/tokenizer/char_class.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

constexpr uint32_t kCamelFirst = kUpper | kOtherLetter | kMark;
constexpr uint32_t kCamelSecond = kLower | kOtherLetter | kMark;

// A character with its classes; at the end of the text, of no bytes and class.
struct Character {
  char32_t value = 0;
  size_t bytes = 0;
  uint32_t classes = 0;

  [[nodiscard]] bool exists() const { return bytes > 0; }
};

// One attempt at one position.
class Matcher {
 public:
  Matcher(const PatternRules& rules, absl::string_view text)
      : rules_(rules), text_(text) {}

  [[nodiscard]] size_t Match(size_t at) const {
    using Try = size_t (Matcher::*)(size_t) const;
    constexpr Try kOrder[] = {&Matcher::HanRun,   &Matcher::AsciiWord,
                              &Matcher::Leading,  &Matcher::Word,
                              &Matcher::Number,   &Matcher::Symbols,
                              &Matcher::Newlines, &Matcher::Spaces};
    for (const Try attempt : kOrder) {
      const size_t end = (this->*attempt)(at);
      if (end > at) {
        return end;
      }
    }
    return at;
  }

 private:
  [[nodiscard]] Character Peek(size_t at) const {
    if (at >= text_.size()) {
      return {};
    }
    const CodePoint c = CodePointAt(text_, at);
    return {c.value, c.bytes, ClassOf(c.value)};
  }

  [[nodiscard]] bool IsText(size_t at, char expected) const {
    return at < text_.size() && text_[at] == expected;
  }

  // End of the run of characters in `classes` from `at` on.
  [[nodiscard]] size_t Run(size_t at, uint32_t classes) const {
    for (Character c = Peek(at); (c.classes & classes) != 0; c = Peek(at)) {
      at += c.bytes;
    }
    return at;
  }

  [[nodiscard]] size_t HanRun(size_t at) const {
    if (!rules_.han_runs) {
      return at;
    }
    for (Character c = Peek(at); c.exists() && IsHan(c.value); c = Peek(at)) {
      at += c.bytes;
    }
    return at;
  }

  [[nodiscard]] size_t AsciiWord(size_t at) const {
    if (!rules_.ascii_words || at >= text_.size()) {
      return at;
    }
    const char first = text_[at];
    const bool punctuation =
        (first > ' ' && first < '0') || (first > '9' && first < 'A') ||
        (first > 'Z' && first < 'a') || (first > 'z' && first <= '~');
    const auto letter = [&](size_t i) {
      return i < text_.size() && ((text_[i] >= 'a' && text_[i] <= 'z') ||
                                  (text_[i] >= 'A' && text_[i] <= 'Z'));
    };
    if (!punctuation || !letter(at + 1)) {
      return at;
    }
    size_t end = at + 1;
    while (letter(end)) {
      ++end;
    }
    return end;
  }

  // 's 't 're 've 'm 'll 'd at `at`; `any_case` also folds U+017F to s.
  [[nodiscard]] size_t Contraction(size_t at, bool any_case) const {
    if (!IsText(at, '\'')) {
      return at;
    }
    const auto fold = [&](size_t i) -> char32_t {
      const Character c = Peek(i);
      if (any_case && c.value >= 'A' && c.value <= 'Z') {
        return c.value + ('a' - 'A');
      }
      return any_case && c.value == 0x17F ? U's' : c.value;
    };
    const char32_t first = fold(at + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') {
      return at + 1 + Peek(at + 1).bytes;
    }
    const char32_t second = first < 0x80 ? fold(at + 2) : 0;
    const bool two = (first == 'r' && second == 'e') ||
                     (first == 'v' && second == 'e') ||
                     (first == 'l' && second == 'l');
    return two ? at + 3 : at;
  }

  [[nodiscard]] size_t Leading(size_t at) const {
    if (rules_.contractions == PatternRules::Contractions::kExact) {
      return Contraction(at, false);
    }
    if (rules_.contractions == PatternRules::Contractions::kAnyCase) {
      return Contraction(at, true);
    }
    return at;
  }

  [[nodiscard]] size_t Word(size_t at) const {
    switch (rules_.words) {
      case PatternRules::Words::kNone:
        return at;
      case PatternRules::Words::kAfterSpace: {
        const size_t start = IsText(at, ' ') ? at + 1 : at;
        const size_t end = Run(start, rules_.letters);
        return end > start ? end : at;
      }
      case PatternRules::Words::kAfterAny: {
        const Character first = Peek(at);
        // A mark that may lead as well as stand in the word gives one extent.
        if ((first.classes & rules_.letters) != 0) {
          return Run(at, rules_.letters);
        }
        const size_t start = at + LeadBytes(first);
        const size_t end = Run(start, rules_.letters);
        return end > start ? end : at;
      }
      case PatternRules::Words::kCamelCase:
        return CamelCase(at);
    }
    return at;
  }

  // Bytes of the optional character in front of a word.
  [[nodiscard]] size_t LeadBytes(const Character& first) const {
    return (first.classes & (rules_.not_lead | kNewline)) == 0 ? first.bytes
                                                               : 0;
  }

  [[nodiscard]] bool InCamel(const Character& c, uint32_t classes) const {
    return (c.classes & classes) != 0 && !(rules_.han_runs && IsHan(c.value));
  }

  [[nodiscard]] size_t CamelRun(size_t at, uint32_t classes) const {
    for (Character c = Peek(at); InCamel(c, classes); c = Peek(at)) {
      at += c.bytes;
    }
    return at;
  }

  // First*Second+ from `start`: greedy, giving back of First no more than the
  // one character that Second needs. `start` when there is no match.
  [[nodiscard]] size_t CamelLower(size_t start) const {
    const size_t middle = CamelRun(start, kCamelFirst);
    const size_t end = CamelRun(middle, kCamelSecond);
    if (end > middle) {
      return end;
    }
    for (size_t at = middle; at > start;) {
      const size_t previous = PreviousCodePoint(text_, at);
      if (InCamel(Peek(previous), kCamelSecond)) {
        return at;
      }
      at = previous;
    }
    return start;
  }

  [[nodiscard]] size_t CamelUpper(size_t start) const {
    const size_t middle = CamelRun(start, kCamelFirst);
    return middle > start ? CamelRun(middle, kCamelSecond) : start;
  }

  [[nodiscard]] size_t CamelCase(size_t at) const {
    const size_t led = at + LeadBytes(Peek(at));
    size_t end = CamelLower(led);
    if (end == led) {
      end = led == at ? at : CamelLower(at);
      if (end == at) {
        end = CamelUpper(led);
        if (end == led) {
          end = CamelUpper(at);
        }
      }
    }
    const bool tail = end > at && rules_.contractions ==
                                      PatternRules::Contractions::kAfterWord;
    return tail ? Contraction(end, true) : end;
  }

  [[nodiscard]] size_t Number(size_t at) const {
    if (rules_.numbers_after_space) {
      const size_t start = IsText(at, ' ') ? at + 1 : at;
      const size_t end = Run(start, kNumber);
      return end > start ? end : at;
    }
    for (int i = 0; i < rules_.numbers_max; ++i) {
      const Character c = Peek(at);
      if ((c.classes & kNumber) == 0) {
        break;
      }
      at += c.bytes;
    }
    return at;
  }

  [[nodiscard]] bool IsSymbol(const Character& c) const {
    return c.exists() &&
           (rules_.symbols_in != 0 ? (c.classes & rules_.symbols_in) != 0
                                   : (c.classes & rules_.symbols_out) == 0);
  }

  [[nodiscard]] size_t Symbols(size_t at) const {
    if (rules_.symbols_in == 0 && rules_.symbols_out == 0) {
      return at;
    }
    const size_t start = IsText(at, ' ') ? at + 1 : at;
    size_t end = start;
    for (Character c = Peek(end); IsSymbol(c); c = Peek(end)) {
      end += c.bytes;
    }
    if (end == start) {
      return at;
    }
    while (end < text_.size() &&
           rules_.symbols_tail.find(text_[end]) != absl::string_view::npos) {
      ++end;
    }
    return end;
  }

  [[nodiscard]] size_t Newlines(size_t at) const {
    if (!rules_.newlines) {
      return at;
    }
    size_t end = at;
    for (Character c = Peek(at); (c.classes & kSpace) != 0; c = Peek(at)) {
      at += c.bytes;
      if ((c.classes & kNewline) != 0) {
        end = at;
      }
    }
    return end;
  }

  [[nodiscard]] size_t Spaces(size_t at) const {
    if (!rules_.spaces) {
      return at;
    }
    const size_t end = Run(at, kSpace);
    if (end == at || end == text_.size()) {
      return end;
    }
    const size_t last = PreviousCodePoint(text_, end);
    return last > at ? last : end;
  }

  const PatternRules& rules_;
  const absl::string_view text_;
};

}  // namespace

size_t MatchRules(const PatternRules& rules, absl::string_view text,
                  size_t at) {
  return Matcher(rules, text).Match(at);
}

}  // namespace millrace::model
