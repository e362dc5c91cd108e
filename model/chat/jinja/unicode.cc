#include "model/chat/jinja/unicode.h"

#include "absl/strings/ascii.h"
#include "unicode/bytestream.h"
#include "unicode/casemap.h"
#include "unicode/edits.h"
#include "unicode/stringpiece.h"
#include "unicode/uchar.h"
#include "unicode/utf8.h"

namespace millrace::model::jinja {
namespace {

UChar32 Icu(char32_t code_point) { return static_cast<UChar32>(code_point); }

icu::StringPiece Piece(absl::string_view bytes) {
  return {bytes.data(), static_cast<int32_t>(bytes.size())};
}

// The capital sigma at `position` ends a word: a cased letter before it and
// none after, letters that carry no case skipped.
bool IsFinalSigma(absl::string_view bytes, int64_t position) {
  int64_t at = position;
  bool cased_before = false;
  while (at > 0) {
    at = PreviousPosition(bytes, at);
    const UChar32 c = Icu(CodePointAt(bytes, at));
    if (!u_hasBinaryProperty(c, UCHAR_CASE_IGNORABLE)) {
      cased_before = u_hasBinaryProperty(c, UCHAR_CASED);
      break;
    }
  }
  at = NextPosition(bytes, position);
  while (cased_before && at < static_cast<int64_t>(bytes.size())) {
    const UChar32 c = Icu(CodePointAt(bytes, at));
    if (!u_hasBinaryProperty(c, UCHAR_CASE_IGNORABLE)) {
      return !u_hasBinaryProperty(c, UCHAR_CASED);
    }
    at = NextPosition(bytes, at);
  }
  return cased_before;
}

enum class OneCase { kUpper, kLower, kTitle };

// Maps the one code point at [begin, end) of `text`.
void AppendCased(const Text& text, int64_t begin, int64_t end, OneCase to,
                 Text& out) {
  const absl::string_view one = text.bytes().substr(
      static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  if (one.size() == 1) {
    const char mapped = to == OneCase::kLower ? absl::ascii_tolower(one[0])
                                              : absl::ascii_toupper(one[0]);
    out.AppendMapped({&mapped, 1}, text, begin, end);
    return;
  }
  std::string mapped;
  icu::StringByteSink<std::string> sink(&mapped);
  UErrorCode error = U_ZERO_ERROR;
  switch (to) {
    case OneCase::kUpper:
      icu::CaseMap::utf8ToUpper("", 0, Piece(one), sink, nullptr, error);
      break;
    case OneCase::kLower:
      if (CodePointAt(one, 0) == 0x3A3) {
        AppendCodePoint(IsFinalSigma(text.bytes(), begin) ? 0x3C2 : 0x3C3,
                        mapped);
      } else {
        icu::CaseMap::utf8ToLower("", 0, Piece(one), sink, nullptr, error);
      }
      break;
    case OneCase::kTitle:
      icu::CaseMap::utf8ToTitle(
          "", U_TITLECASE_NO_BREAK_ADJUSTMENT | U_TITLECASE_WHOLE_STRING,
          nullptr, Piece(one), sink, nullptr, error);
      break;
  }
  out.AppendMapped(U_SUCCESS(error) ? absl::string_view(mapped) : one, text,
                   begin, end);
}

}  // namespace

bool IsWellFormed(absl::string_view bytes) {
  const auto size = static_cast<int32_t>(bytes.size());
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  for (int32_t at = 0; at < size;) {
    UChar32 c;
    U8_NEXT(data, at, size, c);
    if (c < 0) {
      return false;
    }
  }
  return true;
}

void AppendCodePoint(char32_t code_point, std::string& out) {
  UChar32 c = Icu(code_point);
  if (!U_IS_UNICODE_CHAR(c) && (c > 0x10FFFF || c < 0 || U_IS_SURROGATE(c))) {
    c = 0xFFFD;
  }
  char units[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(units, length, c);
  out.append(units, static_cast<size_t>(length));
}

char32_t CodePointAt(absl::string_view bytes, int64_t position) {
  const char* data = bytes.data();
  UChar32 c;
  U8_GET_UNSAFE(data, position, c);
  return static_cast<char32_t>(c);
}

int64_t NextPosition(absl::string_view bytes, int64_t position) {
  const auto size = static_cast<int64_t>(bytes.size());
  ++position;
  while (position < size && U8_IS_TRAIL(bytes[static_cast<size_t>(position)])) {
    ++position;
  }
  return position;
}

int64_t PreviousPosition(absl::string_view bytes, int64_t position) {
  --position;
  while (position > 0 && U8_IS_TRAIL(bytes[static_cast<size_t>(position)])) {
    --position;
  }
  return position;
}

int64_t CountCodePoints(absl::string_view bytes) {
  int64_t count = 0;
  for (const char unit : bytes) {
    count += U8_IS_TRAIL(unit) ? 0 : 1;
  }
  return count;
}

int64_t OffsetOf(absl::string_view bytes, int64_t index) {
  int64_t position = 0;
  while (index > 0 && position < static_cast<int64_t>(bytes.size())) {
    position = NextPosition(bytes, position);
    --index;
  }
  return position;
}

bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool IsPrintable(char32_t code_point) {
  if (code_point == ' ') {
    return true;
  }
  constexpr uint32_t kHidden = U_GC_C_MASK | U_GC_Z_MASK;
  return (U_GET_GC_MASK(Icu(code_point)) & kHidden) == 0;
}

bool IsAlpha(char32_t code_point) {
  return (U_GET_GC_MASK(Icu(code_point)) & U_GC_L_MASK) != 0;
}

bool IsDecimal(char32_t code_point) {
  return u_charType(Icu(code_point)) == U_DECIMAL_DIGIT_NUMBER;
}

bool IsDigit(char32_t code_point) {
  const auto type = u_getIntPropertyValue(Icu(code_point), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

bool IsNumeric(char32_t code_point) {
  return u_getIntPropertyValue(Icu(code_point), UCHAR_NUMERIC_TYPE) !=
         U_NT_NONE;
}

bool IsUpper(char32_t code_point) { return u_isUUppercase(Icu(code_point)); }
bool IsLower(char32_t code_point) { return u_isULowercase(Icu(code_point)); }
bool IsTitle(char32_t code_point) { return u_istitle(Icu(code_point)); }

Text MapCase(const Text& text, CaseMapping mapping) {
  std::string mapped;
  icu::StringByteSink<std::string> sink(&mapped);
  icu::Edits edits;
  UErrorCode error = U_ZERO_ERROR;
  const icu::StringPiece source = Piece(text.bytes());
  switch (mapping) {
    case CaseMapping::kUpper:
      icu::CaseMap::utf8ToUpper("", 0, source, sink, &edits, error);
      break;
    case CaseMapping::kLower:
      icu::CaseMap::utf8ToLower("", 0, source, sink, &edits, error);
      break;
    case CaseMapping::kFold:
      icu::CaseMap::utf8Fold(0, source, sink, &edits, error);
      break;
  }
  if (U_FAILURE(error)) {
    return text;
  }
  Text out;
  icu::Edits::Iterator edit = edits.getFineIterator();
  while (edit.next(error)) {
    const int64_t begin = edit.sourceIndex();
    const int64_t end = begin + edit.oldLength();
    if (!edit.hasChange()) {
      out.Append(text, begin, end);
      continue;
    }
    out.AppendMapped(absl::string_view(mapped).substr(
                         static_cast<size_t>(edit.destinationIndex()),
                         static_cast<size_t>(edit.newLength())),
                     text, begin, end);
  }
  return out;
}

Text TitleCase(const Text& text) {
  Text out;
  bool cased_before = false;
  for (int64_t at = 0; at < text.size();) {
    const int64_t next = NextPosition(text.bytes(), at);
    AppendCased(text, at, next,
                cased_before ? OneCase::kLower : OneCase::kTitle, out);
    cased_before =
        u_hasBinaryProperty(Icu(CodePointAt(text.bytes(), at)), UCHAR_CASED);
    at = next;
  }
  return out;
}

Text Capitalize(const Text& text) {
  if (text.empty()) {
    return text;
  }
  Text out;
  const int64_t first = NextPosition(text.bytes(), 0);
  AppendCased(text, 0, first, OneCase::kTitle, out);
  // Mapped as a whole, so that a sigma sees the letter before it.
  for (int64_t at = first; at < text.size();) {
    const int64_t next = NextPosition(text.bytes(), at);
    AppendCased(text, at, next, OneCase::kLower, out);
    at = next;
  }
  return out;
}

Text SwapCase(const Text& text) {
  Text out;
  for (int64_t at = 0; at < text.size();) {
    const int64_t next = NextPosition(text.bytes(), at);
    const char32_t c = CodePointAt(text.bytes(), at);
    if (IsUpper(c)) {
      AppendCased(text, at, next, OneCase::kLower, out);
    } else if (IsLower(c)) {
      AppendCased(text, at, next, OneCase::kUpper, out);
    } else {
      out.Append(text, at, next);
    }
    at = next;
  }
  return out;
}

}  // namespace millrace::model::jinja
