#include "model/tokenizer/pattern.h"

#include <utility>

#include "model/tokenizer/regex.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

class Literal final : public Pattern {
 public:
  explicit Literal(absl::string_view literal) : literal_(literal) {}

  absl::Status FindAll(absl::string_view text, Span range,
                       std::vector<Span>* out) const override {
    if (literal_.empty()) {
      return absl::OkStatus();
    }
    const absl::string_view part = text.substr(0, range.end);
    for (size_t at = part.find(literal_, range.begin);
         at != absl::string_view::npos;
         at = part.find(literal_, at + literal_.size())) {
      out->push_back({at, at + literal_.size()});
    }
    return absl::OkStatus();
  }

 private:
  const std::string literal_;
};

class Rules final : public Pattern {
 public:
  explicit Rules(const PatternRules& rules) : rules_(rules) {}

  absl::Status FindAll(absl::string_view text, Span range,
                       std::vector<Span>* out) const override {
    const absl::string_view part =
        text.substr(range.begin, range.end - range.begin);
    for (size_t at = 0; at < part.size();) {
      const size_t end = MatchRules(rules_, part, at);
      if (end > at) {
        out->push_back({range.begin + at, range.begin + end});
        at = end;
      } else {
        at += CodePointAt(part, at).bytes;
      }
    }
    return absl::OkStatus();
  }

 private:
  const PatternRules rules_;
};

}  // namespace

std::unique_ptr<Pattern> LiteralPattern(absl::string_view literal) {
  return std::make_unique<Literal>(literal);
}

std::unique_ptr<Pattern> RulesPattern(const PatternRules& rules) {
  return std::make_unique<Rules>(rules);
}

absl::StatusOr<std::unique_ptr<Pattern>> RegexPattern(
    absl::string_view regex, absl::string_view object) {
  if (const std::optional<PatternRules> rules = FindRules(regex)) {
    return RulesPattern(*rules);
  }
  return Pcre2Pattern(regex, object);
}

}  // namespace millrace::model
