#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/pattern_rules.h"

namespace millrace::model {

// A range of bytes [begin, end) of a text.
struct Span {
  size_t begin = 0;
  size_t end = 0;

  friend bool operator==(const Span& a, const Span& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

// Something to look for in well-formed text. Immutable; any thread.
class Pattern {
 public:
  virtual ~Pattern() = default;

  // Appends the matches in [range.begin, range.end) of `text`, from left to
  // right, not overlapping, not empty. What lies outside of the range is not
  // there. kResourceExhausted when the match limit is reached.
  [[nodiscard]] virtual absl::Status FindAll(absl::string_view text, Span range,
                                             std::vector<Span>* out) const = 0;
};

std::unique_ptr<Pattern> LiteralPattern(absl::string_view literal);
std::unique_ptr<Pattern> RulesPattern(const PatternRules& rules);
// Hand-written rules where the regex is a known one, else PCRE2. A regex that
// does not compile is an InputError naming `object`.
absl::StatusOr<std::unique_ptr<Pattern>> RegexPattern(absl::string_view regex,
                                                      absl::string_view object);

}  // namespace millrace::model
