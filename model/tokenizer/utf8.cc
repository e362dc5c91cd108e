#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

struct Lead {
  size_t length;              // of the whole code point; 0: no lead byte
  unsigned char second_low;   // range of the second byte
  unsigned char second_high;  // inclusive
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) {
    return {1, 0, 0};
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {2, 0x80, 0xBF};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    const unsigned char low = byte == 0xE0 ? 0xA0 : 0x80;
    const unsigned char high = byte == 0xED ? 0x9F : 0xBF;
    return {3, low, high};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    const unsigned char low = byte == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = byte == 0xF4 ? 0x8F : 0xBF;
    return {4, low, high};
  }
  return {0, 0, 0};
}

}  // namespace

size_t PreviousCodePoint(absl::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
    --at;
  }
  return at;
}

void AppendUtf8(char32_t code_point, std::string* out) {
  const auto push = [&](char32_t byte) {
    out->push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | (code_point >> 18));
    push(0x80 | ((code_point >> 12) & 0x3F));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

Utf8Unit NextUtf8Unit(absl::string_view bytes, size_t at) {
  const Lead lead = LeadOf(static_cast<unsigned char>(bytes[at]));
  if (lead.length == 0) {
    return {Utf8Kind::kIllFormed, 1};
  }
  for (size_t i = 1; i < lead.length; ++i) {
    if (at + i == bytes.size()) {
      return {Utf8Kind::kIncomplete, i};
    }
    const auto byte = static_cast<unsigned char>(bytes[at + i]);
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) {
      return {Utf8Kind::kIllFormed, i};
    }
  }
  return {Utf8Kind::kCharacter, lead.length};
}

bool IsWellFormed(absl::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Unit unit = NextUtf8Unit(bytes, at);
    if (unit.kind != Utf8Kind::kCharacter) {
      return false;
    }
    at += unit.bytes;
  }
  return true;
}

void LossyUtf8::Append(absl::string_view bytes, std::string* out) {
  held_.append(bytes.data(), bytes.size());
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Unit unit = NextUtf8Unit(held_, at);
    if (unit.kind == Utf8Kind::kIncomplete) {
      break;
    }
    if (unit.kind == Utf8Kind::kCharacter) {
      out->append(held_, at, unit.bytes);
    } else {
      out->append(kReplacementCharacter.data(), kReplacementCharacter.size());
    }
    at += unit.bytes;
  }
  held_.erase(0, at);
}

void LossyUtf8::Finish(std::string* out) {
  if (!held_.empty()) {
    // An incomplete code point is one maximal part.
    out->append(kReplacementCharacter.data(), kReplacementCharacter.size());
    held_.clear();
  }
}

}  // namespace millrace::model
