#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "model/chat/jinja/value.h"

namespace millrace::model::jinja {

// Numbers to text and back as Python does it.

std::string IntegerText(Integer value);
// repr() of a float: the shortest digits that give the number back.
std::string FloatText(double value);

// int(text, base): blanks around, a sign, underscores between digits, a prefix
// that fits the base (2 to 36; 0 reads it from the prefix). Nullopt when it is
// none or beyond Integer.
std::optional<Integer> ParseInteger(absl::string_view text, int base);
// float(text).
std::optional<double> ParseFloat(absl::string_view text);
// The whole part; nullopt for infinity, not a number, and beyond Integer.
std::optional<Integer> TruncateToInteger(double value);

}  // namespace millrace::model::jinja
