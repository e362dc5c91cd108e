#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "model/chat/jinja/text.h"

namespace millrace::model::jinja {

// Code points of well-formed UTF-8 and what Python knows of them. Positions
// are byte offsets at the start of a code point.

bool IsWellFormed(absl::string_view bytes);
// A surrogate or a value past U+10FFFF is written as U+FFFD.
void AppendCodePoint(char32_t code_point, std::string& out);
char32_t CodePointAt(absl::string_view bytes, int64_t position);
// The position after, or before, the code point there.
int64_t NextPosition(absl::string_view bytes, int64_t position);
int64_t PreviousPosition(absl::string_view bytes, int64_t position);
int64_t CountCodePoints(absl::string_view bytes);
// The offset of code point `index`, in [0, count].
int64_t OffsetOf(absl::string_view bytes, int64_t index);

// As str.isspace, str.isprintable, ... have it of one character.
bool IsSpace(char32_t code_point);
bool IsPrintable(char32_t code_point);
bool IsAlpha(char32_t code_point);
bool IsDecimal(char32_t code_point);
bool IsDigit(char32_t code_point);
bool IsNumeric(char32_t code_point);
bool IsUpper(char32_t code_point);
bool IsLower(char32_t code_point);
bool IsTitle(char32_t code_point);

enum class CaseMapping { kUpper, kLower, kFold };

// Full Unicode mapping in context, origins kept.
Text MapCase(const Text& text, CaseMapping mapping);
// str.title(), str.capitalize(), str.swapcase().
Text TitleCase(const Text& text);
Text Capitalize(const Text& text);
Text SwapCase(const Text& text);

}  // namespace millrace::model::jinja
