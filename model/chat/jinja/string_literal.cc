#include "model/chat/jinja/string_literal.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// The letter after a backslash that stands for one character; 0 when unknown.
char SimpleEscape(char letter) {
  switch (letter) {
    case '\\':
    case '\'':
    case '"':
      return letter;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return 0;
  }
}

uint32_t ReadDigits(absl::string_view digits, uint32_t base) {
  uint32_t value = 0;
  for (const char c : digits) {
    const int digit =
        absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10;
    value = value * base + static_cast<uint32_t>(digit);
  }
  return value;
}

// The escape at inside[at], which is a backslash with something behind it;
// returns the position after it.
absl::StatusOr<size_t> AppendEscape(absl::string_view inside, size_t at,
                                    std::string& out) {
  const char letter = inside[at + 1];
  if (letter == '\n') {
    return at + 2;
  }
  if (const char simple = SimpleEscape(letter); simple != 0) {
    out.push_back(simple);
    return at + 2;
  }
  if (letter >= '0' && letter <= '7') {
    size_t end = at + 1;
    while (end < inside.size() && end < at + 4 && inside[end] >= '0' &&
           inside[end] <= '7') {
      ++end;
    }
    AppendCodePoint(ReadDigits(inside.substr(at + 1, end - at - 1), 8), out);
    return end;
  }
  const size_t length = letter == 'x'   ? 2
                        : letter == 'u' ? 4
                        : letter == 'U' ? 8
                                        : 0;
  if (length > 0) {
    const absl::string_view digits = inside.substr(at + 2, length);
    if (digits.size() < length ||
        !std::all_of(digits.begin(), digits.end(),
                     [](unsigned char c) { return absl::ascii_isxdigit(c); })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "truncated \\", std::string(1, letter), " escape in a string"));
    }
    const uint32_t code_point = ReadDigits(digits, 16);
    if (code_point > 0x10FFFF) {
      return absl::InvalidArgumentError(
          "an escape in a string is no Unicode character");
    }
    AppendCodePoint(code_point, out);
    return at + 2 + length;
  }
  if (letter == 'N') {
    return absl::InvalidArgumentError(
        "\\N{...} in a string is not supported; write the character itself");
  }
  out.push_back('\\');
  return at + 1;
}

}  // namespace

absl::StatusOr<std::string> UnescapeLiteral(absl::string_view inside) {
  std::string out;
  out.reserve(inside.size());
  for (size_t at = 0; at < inside.size();) {
    if (inside[at] != '\\' || at + 1 >= inside.size()) {
      out.push_back(inside[at++]);
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(at, AppendEscape(inside, at, out));
  }
  return out;
}

}  // namespace millrace::model::jinja
