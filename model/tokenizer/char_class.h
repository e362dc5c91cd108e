#pragma once

#include <cstdint>

namespace millrace::model {

// Classes of characters that pre-tokenizer patterns tell apart, as bits.
enum CharClass : uint32_t {
  kUpper = 1,         // Lu, Lt
  kLower = 2,         // Ll
  kOtherLetter = 4,   // Lm, Lo
  kMark = 8,          // M
  kNumber = 16,       // N
  kPunctuation = 32,  // P
  kSymbol = 64,       // S
  kSpace = 128,       // White_Space: \s
  kNewline = 256,     // CR, LF (also kSpace)
};
inline constexpr uint32_t kLetter = kUpper | kLower | kOtherLetter;

// 0 for characters in none of the classes. Tables: those of ICU.
uint32_t ClassOf(char32_t code_point);

// Script property Han (not script extensions).
bool IsHan(char32_t code_point);

// \w of Rust's regex: alphabetic, marks, decimal digits, connectors, joiners.
bool IsWordCharacter(char32_t code_point);

}  // namespace millrace::model
