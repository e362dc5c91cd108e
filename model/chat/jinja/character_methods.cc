#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// str.isX() for the tests that hold when every character passes.
template <bool (*holds)(char32_t), bool of_empty>
absl::StatusOr<Value> AllMethod(Runtime& runtime, Arguments& arguments) {
  const absl::string_view bytes = arguments.positional[0].bytes();
  MILLRACE_RETURN_IF_ERROR(
      runtime.SpendWork(static_cast<int64_t>(bytes.size())));
  if (bytes.empty()) {
    return Value::Bool(of_empty);
  }
  for (int64_t at = 0; at < static_cast<int64_t>(bytes.size());
       at = NextPosition(bytes, at)) {
    if (!holds(CodePointAt(bytes, at))) {
      return Value::Bool(false);
    }
  }
  return Value::Bool(true);
}

bool IsAlphanumeric(char32_t c) {
  return IsAlpha(c) || IsDecimal(c) || IsDigit(c) || IsNumeric(c);
}

bool IsAscii(char32_t c) { return c < 0x80; }

// islower() and isupper(): one cased character at least, and none of the
// other case.
template <bool upper>
absl::StatusOr<Value> OneCaseMethod(Runtime& runtime, Arguments& arguments) {
  const absl::string_view bytes = arguments.positional[0].bytes();
  MILLRACE_RETURN_IF_ERROR(
      runtime.SpendWork(static_cast<int64_t>(bytes.size())));
  bool found = false;
  for (int64_t at = 0; at < static_cast<int64_t>(bytes.size());
       at = NextPosition(bytes, at)) {
    const char32_t c = CodePointAt(bytes, at);
    if (IsTitle(c) || (upper ? IsLower(c) : IsUpper(c))) {
      return Value::Bool(false);
    }
    found = found || (upper ? IsUpper(c) : IsLower(c));
  }
  return Value::Bool(found);
}

absl::StatusOr<Value> IsTitleMethod(Runtime& runtime, Arguments& arguments) {
  const absl::string_view bytes = arguments.positional[0].bytes();
  MILLRACE_RETURN_IF_ERROR(
      runtime.SpendWork(static_cast<int64_t>(bytes.size())));
  bool cased = false;
  bool previous_cased = false;
  for (int64_t at = 0; at < static_cast<int64_t>(bytes.size());
       at = NextPosition(bytes, at)) {
    const char32_t c = CodePointAt(bytes, at);
    const bool starts = IsUpper(c) || IsTitle(c);
    if ((starts && previous_cased) || (IsLower(c) && !previous_cased)) {
      return Value::Bool(false);
    }
    previous_cased = starts || IsLower(c);
    cased = cased || previous_cased;
  }
  return Value::Bool(cased);
}

absl::StatusOr<Value> IsIdentifier(Runtime& runtime, Arguments& arguments) {
  const absl::string_view bytes = arguments.positional[0].bytes();
  MILLRACE_RETURN_IF_ERROR(
      runtime.SpendWork(static_cast<int64_t>(bytes.size())));
  for (int64_t at = 0; at < static_cast<int64_t>(bytes.size());
       at = NextPosition(bytes, at)) {
    const char32_t c = CodePointAt(bytes, at);
    if (c != '_' && !IsAlpha(c) && (at == 0 || !IsDecimal(c))) {
      return Value::Bool(false);
    }
  }
  return Value::Bool(!bytes.empty());
}

constexpr Native kMethods[] = {
    {"isalnum", "s", 1, AllMethod<IsAlphanumeric, false>},
    {"isalpha", "s", 1, AllMethod<IsAlpha, false>},
    {"isascii", "s", 1, AllMethod<IsAscii, true>},
    {"isdecimal", "s", 1, AllMethod<IsDecimal, false>},
    {"isdigit", "s", 1, AllMethod<IsDigit, false>},
    {"isidentifier", "s", 1, IsIdentifier},
    {"islower", "s", 1, OneCaseMethod<false>},
    {"isnumeric", "s", 1, AllMethod<IsNumeric, false>},
    {"isprintable", "s", 1, AllMethod<IsPrintable, true>},
    {"isspace", "s", 1, AllMethod<IsSpace, false>},
    {"istitle", "s", 1, IsTitleMethod},
    {"isupper", "s", 1, OneCaseMethod<true>},
};

}  // namespace

absl::Span<const Native> CharacterMethods() { return kMethods; }

}  // namespace millrace::model::jinja
