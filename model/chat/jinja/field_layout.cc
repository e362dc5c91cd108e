#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/percent_format.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// The digits of an integer's magnitude.
std::string InBase(Integer value, int base, bool upper) {
  std::string out;
  do {
    const int digit = std::abs(static_cast<int>(value % base));
    const char letter = upper ? 'A' : 'a';
    out.push_back(
        static_cast<char>(digit < 10 ? '0' + digit : letter + digit - 10));
    value /= base;
  } while (value != 0);
  return {out.rbegin(), out.rend()};
}

std::string Grouped(const std::string& number, char mark) {
  size_t end = 0;
  while (end < number.size() && absl::ascii_isdigit(number[end])) {
    ++end;
  }
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % 3 == 0) {
      out.push_back(mark);
    }
    out.push_back(number[i]);
  }
  return out + number.substr(end);
}

std::string FloatDigits(double magnitude, const FieldLayout& layout) {
  const auto precision =
      static_cast<int>(layout.precision < 0 ? 6 : layout.precision);
  switch (layout.type) {
    case 'e':
      return absl::StrFormat("%.*e", precision, magnitude);
    case 'E':
      return absl::StrFormat("%.*E", precision, magnitude);
    case 'f':
    case 'F':
      return absl::StrFormat("%.*f", precision, magnitude);
    case '%':
      return absl::StrFormat("%.*f%%", precision, magnitude * 100);
    case 'g':
      return absl::StrFormat("%.*g", precision, magnitude);
    case 'G':
      return absl::StrFormat("%.*G", precision, magnitude);
    default:
      if (layout.precision >= 0) {
        return absl::StrFormat("%.*g", precision, magnitude);
      }
      return FloatText(magnitude);
  }
}

std::string IntegerDigits(Integer value, const FieldLayout& layout,
                          std::string& prefix) {
  std::string digits;
  switch (layout.type) {
    case 'x':
    case 'X':
      prefix = layout.alternate ? (layout.type == 'x' ? "0x" : "0X") : "";
      digits = InBase(value, 16, layout.type == 'X');
      break;
    case 'o':
      prefix = layout.alternate ? "0o" : "";
      digits = InBase(value, 8, false);
      break;
    case 'b':
      prefix = layout.alternate ? "0b" : "";
      digits = InBase(value, 2, false);
      break;
    default:
      digits = InBase(value, 10, false);
      break;
  }
  return digits;
}

bool IsIntegerType(char type) {
  return absl::string_view("diuoxXb").find(type) != absl::string_view::npos;
}

void AppendFill(char32_t fill, int64_t count, bool untrusted,
                TextWriter& writer) {
  std::string one;
  AppendCodePoint(fill, one);
  std::string all;
  for (int64_t i = 0; i < count; ++i) {
    all.append(one);
  }
  writer.Append(all, untrusted);
}

}  // namespace

absl::Status AppendPadded(const Text& text, const FieldLayout& layout,
                          char align_otherwise, TextWriter& writer) {
  int64_t end = text.size();
  int64_t length = CountCodePoints(text.bytes());
  if (layout.precision >= 0 && length > layout.precision) {
    end = OffsetOf(text.bytes(), layout.precision);
    length = layout.precision;
  }
  const int64_t missing = std::max<int64_t>(layout.width - length, 0);
  const char align = layout.align != 0 ? layout.align : align_otherwise;
  const int64_t before = align == '<'   ? 0
                         : align == '^' ? missing / 2
                                        : missing;
  AppendFill(layout.fill, before, layout.untrusted, writer);
  writer.Append(text, 0, end);
  AppendFill(layout.fill, missing - before, layout.untrusted, writer);
  return writer.status();
}

absl::Status AppendNumber(const Value& number, const FieldLayout& layout,
                          TextWriter& writer) {
  const bool untrusted = number.untrusted() || layout.untrusted;
  std::string prefix;
  std::string digits;
  bool negative = false;
  if (number.IsIntegral() &&
      (layout.type == 0 || layout.type == 'n' || IsIntegerType(layout.type))) {
    negative = number.integer() < 0;
    digits = IntegerDigits(number.integer(), layout, prefix);
  } else if (IsIntegerType(layout.type)) {
    return Fail(absl::StrCat("format '", std::string(1, layout.type),
                             "' needs an integer"));
  } else {
    negative = std::signbit(number.number());
    digits = FloatDigits(std::abs(number.number()), layout);
  }
  if (layout.thousands != 0) {
    digits = Grouped(digits, layout.thousands);
  }
  std::string sign = negative ? "-" : "";
  if (!negative && layout.sign != 0) {
    sign = std::string(1, layout.sign);
  }
  sign += prefix;
  const auto length = static_cast<int64_t>(sign.size() + digits.size());
  const bool inner = layout.align == '=' || (layout.zero && layout.align == 0);
  if (inner && length < layout.width) {
    writer.Append(sign, untrusted);
    AppendFill(layout.zero && layout.align == 0 ? '0' : layout.fill,
               layout.width - length, untrusted, writer);
    writer.Append(digits, untrusted);
    return writer.status();
  }
  FieldLayout outer = layout;
  outer.precision = -1;
  return AppendPadded(Text(sign + digits, untrusted), outer, '>', writer);
}

}  // namespace millrace::model::jinja
