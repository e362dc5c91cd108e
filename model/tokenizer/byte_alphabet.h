#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace::model {

// The alphabet of byte-level vocabularies: a printable character for each byte.
// 0x21..0x7E, 0xA1..0xAC and 0xAE..0xFF are the code points of the same number,
// the other 68 bytes in order are U+0100 and following.

// The character of each byte, appended.
void AppendAsAlphabet(absl::string_view bytes, std::string* out);

// The bytes that characters of the alphabet stand for; none when another
// character is among them. `text` is well-formed.
std::optional<std::string> BytesOfAlphabet(absl::string_view text);

}  // namespace millrace::model
