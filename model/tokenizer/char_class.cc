#include "model/tokenizer/char_class.h"

#include <array>

#include "unicode/uchar.h"
#include "unicode/uscript.h"

namespace millrace::model {
namespace {

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

uint32_t Lookup(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  const uint32_t category = U_MASK(u_charType(c));
  uint32_t out = 0;
  if ((category & (U_GC_LU_MASK | U_GC_LT_MASK)) != 0) {
    out = kUpper;
  } else if ((category & U_GC_LL_MASK) != 0) {
    out = kLower;
  } else if ((category & U_GC_L_MASK) != 0) {
    out = kOtherLetter;
  } else if ((category & U_GC_M_MASK) != 0) {
    out = kMark;
  } else if ((category & U_GC_N_MASK) != 0) {
    out = kNumber;
  } else if ((category & U_GC_P_MASK) != 0) {
    out = kPunctuation;
  } else if ((category & U_GC_S_MASK) != 0) {
    out = kSymbol;
  }
  if (IsWhiteSpace(code_point)) {
    out |= kSpace;
  }
  if (code_point == '\r' || code_point == '\n') {
    out |= kNewline;
  }
  return out;
}

std::array<uint32_t, 128> AsciiClasses() {
  std::array<uint32_t, 128> out{};
  for (char32_t c = 0; c < out.size(); ++c) {
    out[c] = Lookup(c);
  }
  return out;
}

}  // namespace

uint32_t ClassOf(char32_t code_point) {
  static const std::array<uint32_t, 128> kAscii = AsciiClasses();
  return code_point < kAscii.size() ? kAscii[code_point] : Lookup(code_point);
}

bool IsHan(char32_t code_point) {
  if (code_point < 0x2E80) {
    return false;
  }
  UErrorCode error = U_ZERO_ERROR;
  return uscript_getScript(static_cast<UChar32>(code_point), &error) ==
         USCRIPT_HAN;
}

bool IsWordCharacter(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  const uint32_t category = U_MASK(u_charType(c));
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 ||
         (category & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         code_point == 0x200C || code_point == 0x200D;
}

}  // namespace millrace::model
