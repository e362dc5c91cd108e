#include "model/chat/jinja/lexer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/string_literal.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// One line end for all kinds; the final one is dropped.
std::string NormaliseLines(absl::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') {
      ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') {
    out.pop_back();
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source)
      : storage_(std::move(source)), source_(storage_) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) {
      MILLRACE_RETURN_IF_ERROR(Root());
    }
    Add(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool Sees(absl::string_view text) const {
    return absl::StartsWith(source_.substr(at_), text);
  }

  void Add(TokenType type, absl::string_view text) {
    tokens_.push_back({type, std::string(text), line_});
  }

  // Moves to `position`, counting lines.
  void MoveTo(size_t position) {
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<int64_t>(at_),
                   source_.begin() + static_cast<int64_t>(position), '\n'));
    at_ = position;
  }

  void SkipSpace() {
    size_t position = at_;
    while (position < source_.size() &&
           IsSpace(CodePointAt(source_, static_cast<int64_t>(position)))) {
      position = static_cast<size_t>(
          NextPosition(source_, static_cast<int64_t>(position)));
    }
    MoveTo(position);
  }

  // Emits source_[at_, end) with the blanks before the tag at `end` taken off
  // as its sign says, and moves there.
  void AddData(size_t end, char sign, bool is_variable) {
    absl::string_view text = source_.substr(at_, end - at_);
    if (sign == '-') {
      while (!text.empty()) {
        const auto size = static_cast<int64_t>(text.size());
        const int64_t last = PreviousPosition(text, size);
        if (!IsSpace(CodePointAt(text, last))) {
          break;
        }
        text = text.substr(0, static_cast<size_t>(last));
      }
    } else if (sign != '+' && !is_variable) {
      const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      const absl::string_view before = text.substr(line);
      const bool starts_line = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      if (starts_line && OnlySpace(before)) {
        text = text.substr(0, line);
      }
    }
    if (!text.empty()) {
      Add(TokenType::kData, text);
    }
    MoveTo(end);
  }

  static bool OnlySpace(absl::string_view text) {
    for (int64_t at = 0; at < static_cast<int64_t>(text.size());
         at = NextPosition(text, at)) {
      if (!IsSpace(CodePointAt(text, at))) {
        return false;
      }
    }
    return true;
  }

  // The next tag, and what it is.
  absl::Status Root() {
    size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == absl::string_view::npos || tag + 1 >= source_.size()) {
        Add(TokenType::kData, source_.substr(at_));
        at_ = source_.size();
        return absl::OkStatus();
      }
      if (absl::StrContains("{%#", source_[tag + 1])) {
        break;
      }
      ++tag;
    }
    const char kind = source_[tag + 1];
    const char next = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    AddData(tag, sign, kind == '{');
    if (kind == '#') {
      MoveTo(at_ + 2 + (sign != 0 ? 1 : 0));
      return Comment();
    }
    if (const size_t after = RawTag("raw", false); after != 0) {
      MoveTo(after);
      return Raw();
    }
    Add(kind == '{' ? TokenType::kVariableBegin : TokenType::kBlockBegin, "");
    MoveTo(at_ + 2 + (sign != 0 ? 1 : 0));
    return Tag(kind == '{');
  }

  absl::Status Comment() {
    const size_t end = source_.find("#}", at_);
    if (end == absl::string_view::npos) {
      return SyntaxError(line_, "Missing end of comment tag");
    }
    const char sign = end > at_ ? source_[end - 1] : '\0';
    MoveTo(end + 2);
    AfterTag(sign);
    return absl::OkStatus();
  }

  // What a closing tag of a block or comment eats behind it.
  void AfterTag(char sign) {
    if (sign == '-') {
      SkipSpace();
    } else if (sign != '+' && Peek() == '\n') {
      MoveTo(at_ + 1);
    }
  }

  // Where the tag `{% name %}` at at_ ends, 0 when it is another one. A raw
  // tag leaves the line end after it alone, an endraw tag takes it.
  [[nodiscard]] size_t RawTag(absl::string_view name, bool closing) const {
    size_t at = at_;
    const auto skip_space = [&] {
      while (at < source_.size() && absl::ascii_isspace(source_[at])) {
        ++at;
      }
    };
    const auto take = [&](absl::string_view text) {
      const bool found = absl::StartsWith(source_.substr(at), text);
      at += found ? text.size() : 0;
      return found;
    };
    if (!take("{%")) {
      return 0;
    }
    if (!take("-")) {
      take("+");
    }
    skip_space();
    if (!take(name)) {
      return 0;
    }
    skip_space();
    if (take("-%}")) {
      skip_space();
      return at;
    }
    if (closing && take("+%}")) {
      return at;
    }
    if (!take("%}")) {
      return 0;
    }
    if (closing) {
      take("\n");
    }
    return at;
  }

  absl::Status Raw() {
    const size_t begin = at_;
    const int line = line_;
    for (size_t tag = source_.find("{%", at_); tag != absl::string_view::npos;
         tag = source_.find("{%", tag + 2)) {
      at_ = tag;
      const size_t after = RawTag("endraw", true);
      at_ = begin;
      if (after != 0) {
        const char next = source_[tag + 2];
        AddData(tag, next == '-' || next == '+' ? next : '\0', false);
        MoveTo(after);
        return absl::OkStatus();
      }
    }
    return SyntaxError(line, "Missing end of raw directive");
  }

  // Whether the tag ends here; moves behind it.
  bool TakeEnd(bool is_variable) {
    const char sign =
        Peek() == '-' || (Peek() == '+' && !is_variable) ? Peek() : '\0';
    const size_t skip = sign == 0 ? 0 : 1;
    if (!absl::StartsWith(source_.substr(at_ + skip),
                          is_variable ? "}}" : "%}")) {
      return false;
    }
    Add(is_variable ? TokenType::kVariableEnd : TokenType::kBlockEnd, "");
    MoveTo(at_ + skip + 2);
    if (sign == '-') {
      SkipSpace();
    } else if (!is_variable) {
      AfterTag(sign);
    }
    return true;
  }

  absl::Status Tag(bool is_variable) {
    const int line = line_;
    std::string open;  // brackets waiting for their partner
    while (true) {
      SkipSpace();
      if (at_ >= source_.size()) {
        return SyntaxError(line, "unexpected end of template inside a tag");
      }
      if (open.empty() && TakeEnd(is_variable)) {
        return absl::OkStatus();
      }
      MILLRACE_RETURN_IF_ERROR(One(open));
    }
  }

  absl::Status One(std::string& open) {
    const char c = Peek();
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      Number();
      return absl::OkStatus();
    }
    if (c == '\'' || c == '"') {
      return String();
    }
    size_t end = at_;
    while (end < source_.size() && IsNamePart(end)) {
      end =
          static_cast<size_t>(NextPosition(source_, static_cast<int64_t>(end)));
    }
    if (end > at_) {
      Add(TokenType::kName, source_.substr(at_, end - at_));
      at_ = end;
      return absl::OkStatus();
    }
    return Operator(open);
  }

  [[nodiscard]] bool IsNamePart(size_t position) const {
    const char32_t c = CodePointAt(source_, static_cast<int64_t>(position));
    return c == '_' || IsAlpha(c) || IsDecimal(c);
  }

  void Number() {
    const auto digits = [&](size_t at) {
      while (at < source_.size() &&
             (absl::ascii_isalnum(static_cast<unsigned char>(source_[at])) ||
              source_[at] == '_') &&
             (source_[at] == '_' ||
              absl::ascii_isdigit(static_cast<unsigned char>(source_[at])))) {
        ++at;
      }
      return at;
    };
    const auto digit_at = [&](size_t at) {
      return at < source_.size() &&
             absl::ascii_isdigit(static_cast<unsigned char>(source_[at]));
    };
    size_t end = digits(at_);
    TokenType type = TokenType::kInteger;
    const char letter = absl::ascii_tolower(Peek(1));
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (Peek() == '0' && (letter == 'x' || letter == 'o' || letter == 'b')) {
      end = at_ + 2;
      while (end < source_.size() &&
             (absl::ascii_isxdigit(static_cast<unsigned char>(source_[end])) ||
              source_[end] == '_')) {
        ++end;
      }
    } else if (!after_dot) {
      if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
        end = digits(end + 1);
        type = TokenType::kFloat;
      }
      const bool exponent =
          end < source_.size() && absl::ascii_tolower(source_[end]) == 'e';
      const size_t sign =
          exponent && end + 1 < source_.size() &&
                  (source_[end + 1] == '+' || source_[end + 1] == '-')
              ? 1
              : 0;
      if (exponent && digit_at(end + 1 + sign)) {
        end = digits(end + 1 + sign);
        type = TokenType::kFloat;
      }
    }
    Add(type, source_.substr(at_, end - at_));
    at_ = end;
  }

  absl::Status String() {
    const char quote = Peek();
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) {
      return SyntaxError(line_, absl::StrCat("unexpected char ",
                                             quote == '"' ? "'\"'" : "\"'\"",
                                             ": the string has no end"));
    }
    absl::StatusOr<std::string> text =
        UnescapeLiteral(source_.substr(at_ + 1, end - at_ - 1));
    if (!text.ok()) {
      return SyntaxError(line_, text.status().message());
    }
    Add(TokenType::kString, *text);
    MoveTo(end + 1);
    return absl::OkStatus();
  }

  absl::Status Operator(std::string& open) {
    static constexpr absl::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const absl::string_view sign : kOperators) {
      if (!Sees(sign)) {
        continue;
      }
      if (sign == "(" || sign == "[" || sign == "{") {
        open.push_back(sign == "(" ? ')' : sign == "[" ? ']' : '}');
      } else if (sign == ")" || sign == "]" || sign == "}") {
        if (open.empty() || open.back() != sign[0]) {
          return SyntaxError(line_, absl::StrCat("unexpected '", sign, "'"));
        }
        open.pop_back();
      }
      Add(TokenType::kOperator, sign);
      at_ += sign.size();
      return absl::OkStatus();
    }
    return SyntaxError(line_,
                       absl::StrCat("unexpected char '",
                                    Printable(source_.substr(at_, 1)), "'"));
  }

  const std::string storage_;
  const absl::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

absl::Status SyntaxError(int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) {
  if (static_cast<int64_t>(source.size()) > kTemplateBytesMax) {
    return SyntaxError(1, absl::StrCat("the template has more than ",
                                       kTemplateBytesMax >> 20, " MiB"));
  }
  if (!IsWellFormed(source)) {
    return SyntaxError(1, "the template is not UTF-8");
  }
  return Lexer(NormaliseLines(source)).Run();
}

}  // namespace millrace::model::jinja
