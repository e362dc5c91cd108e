#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace::model {

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  // 1..4
};

// The code point that starts at text[at]; the text is well-formed and at is the
// start of a code point before its end.
inline CodePoint CodePointAt(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1};
  }
  if (lead < 0xE0) {
    return {((lead & 0x1F) << 6) | (byte(1) & 0x3F), 2};
  }
  if (lead < 0xF0) {
    return {((lead & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F),
            3};
  }
  return {((lead & 0x07) << 18) | ((byte(1) & 0x3F) << 12) |
              ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F),
          4};
}

// Start of the code point that ends before text[end]; end > 0, well-formed.
size_t PreviousCodePoint(absl::string_view text, size_t end);

// `code_point` is a scalar value.
void AppendUtf8(char32_t code_point, std::string* out);

enum class Utf8Kind {
  kCharacter,   // a well-formed code point
  kIllFormed,   // a maximal ill-formed part
  kIncomplete,  // the text ends inside what may be a code point
};

struct Utf8Unit {
  Utf8Kind kind = Utf8Kind::kCharacter;
  size_t bytes = 0;  // 1..4; of an incomplete one, what is there
};

// What stands at bytes[at], at < bytes.size(). Units follow the rule of
// "maximal subparts" (Unicode, section 3.9; WHATWG's decoder).
Utf8Unit NextUtf8Unit(absl::string_view bytes, size_t at);

inline constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Whether all of `bytes` is well-formed UTF-8.
bool IsWellFormed(absl::string_view bytes);

// Turns bytes that arrive in parts into well-formed text, U+FFFD for each
// maximal ill-formed part; the cuts between parts do not matter. One thread.
class LossyUtf8 {
 public:
  void Append(absl::string_view bytes, std::string* out);
  // What was held back as incomplete.
  void Finish(std::string* out);

 private:
  std::string held_;  // less than four bytes
};

}  // namespace millrace::model
