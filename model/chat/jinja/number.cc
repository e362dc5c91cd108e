#include "model/chat/jinja/number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace millrace::model::jinja {
namespace {

absl::string_view TrimBlanks(absl::string_view text) {
  return absl::StripAsciiWhitespace(text);
}

// Takes the underscores out; false where one does not stand between digits.
bool DropUnderscores(absl::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    if (i == 0 || i + 1 == text.size() || !absl::ascii_isalnum(text[i - 1]) ||
        !absl::ascii_isalnum(text[i + 1])) {
      return false;
    }
  }
  return true;
}

// Strips 0x, 0o, 0b where `base` allows it; sets `base` when it was 0.
absl::string_view DropPrefix(absl::string_view digits, int& base) {
  if (digits.size() > 1 && digits[0] == '0') {
    const char letter = absl::ascii_tolower(digits[1]);
    const int told = letter == 'x'   ? 16
                     : letter == 'o' ? 8
                     : letter == 'b' ? 2
                                     : 0;
    if (told != 0 && (base == 0 || base == told)) {
      base = told;
      digits.remove_prefix(2);
      absl::ConsumePrefix(&digits, "_");
      return digits;
    }
  }
  base = base == 0 ? 10 : base;
  return digits;
}

int DigitOf(char c) {
  if (absl::ascii_isdigit(c)) {
    return c - '0';
  }
  return absl::ascii_isalpha(c) ? absl::ascii_tolower(c) - 'a' + 10 : 99;
}

}  // namespace

std::string IntegerText(Integer value) {
  if (value == 0) {
    return "0";
  }
  const bool negative = value < 0;
  std::string out;
  while (value != 0) {
    const int digit = static_cast<int>(value % 10);
    out.push_back(static_cast<char>('0' + (negative ? -digit : digit)));
    value /= 10;
  }
  if (negative) {
    out.push_back('-');
  }
  return {out.rbegin(), out.rend()};
}

std::string FloatText(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                 value, std::chars_format::scientific)
                       .ptr;
  absl::string_view shown(buffer.data(),
                          static_cast<size_t>(end - buffer.data()));
  std::string out(absl::ConsumePrefix(&shown, "-") ? "-" : "");
  const size_t e = shown.find('e');
  const int exponent = std::atoi(std::string(shown.substr(e + 1)).c_str());
  std::string digits(shown.substr(0, 1));
  if (e > 2) {
    absl::StrAppend(&digits, shown.substr(2, e - 2));
  }
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    absl::StrAppend(&out, digits.substr(0, 1), count > 1 ? "." : "",
                    digits.substr(1), "e", exponent < 0 ? "-" : "+",
                    std::abs(exponent) < 10 ? "0" : "", std::abs(exponent));
  } else if (exponent < 0) {
    absl::StrAppend(&out, "0.", std::string(-exponent - 1, '0'), digits);
  } else if (count <= exponent + 1) {
    absl::StrAppend(&out, digits, std::string(exponent + 1 - count, '0'), ".0");
  } else {
    absl::StrAppend(&out, digits.substr(0, exponent + 1), ".",
                    digits.substr(exponent + 1));
  }
  return out;
}

std::optional<Integer> ParseInteger(absl::string_view text, int base) {
  text = TrimBlanks(text);
  const bool negative = absl::ConsumePrefix(&text, "-");
  if (!negative) {
    absl::ConsumePrefix(&text, "+");
  }
  std::string digits;
  if (!DropUnderscores(DropPrefix(text, base), digits) || digits.empty()) {
    return std::nullopt;
  }
  Integer value = 0;
  for (const char c : digits) {
    const int digit = DigitOf(c);
    Integer scaled;
    if (digit >= base || __builtin_mul_overflow(value, base, &scaled) ||
        __builtin_add_overflow(scaled, digit, &value)) {
      return std::nullopt;
    }
  }
  return negative ? -value : value;
}

std::optional<double> ParseFloat(absl::string_view text) {
  std::string digits;
  if (!DropUnderscores(TrimBlanks(text), digits) || digits.empty()) {
    return std::nullopt;
  }
  absl::string_view rest = digits;
  const bool negative = absl::ConsumePrefix(&rest, "-");
  if (!negative) {
    absl::ConsumePrefix(&rest, "+");
  }
  const std::string word = absl::AsciiStrToLower(rest);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = HUGE_VAL;
  } else if (word == "nan") {
    value = std::nan("");
  } else {
    if (word.empty() || (!absl::ascii_isdigit(word[0]) && word[0] != '.')) {
      return std::nullopt;
    }
    const auto [stop, error] =
        std::from_chars(word.data(), word.data() + word.size(), value,
                        std::chars_format::general);
    if (stop != word.data() + word.size() ||
        error == std::errc::invalid_argument) {
      return std::nullopt;
    }
    if (error == std::errc::result_out_of_range) {
      value = std::strtod(word.c_str(), nullptr);
    }
  }
  return negative ? -value : value;
}

std::optional<Integer> TruncateToInteger(double value) {
  if (!(std::abs(value) < 1e38)) {
    return std::nullopt;
  }
  return static_cast<Integer>(value);
}

}  // namespace millrace::model::jinja
