#include "model/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, 0x144> byte{};  // -1: not in the alphabet
};

constexpr Alphabet MakeAlphabet() {
  Alphabet out;
  for (int16_t& byte : out.byte) {
    byte = -1;
  }
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character =
        StandsForItself(byte) ? static_cast<char32_t>(byte) : next++;
    out.character[static_cast<size_t>(byte)] = character;
    out.byte[character] = static_cast<int16_t>(byte);
  }
  return out;
}

constexpr Alphabet kAlphabet = MakeAlphabet();
static_assert(kAlphabet.character[0x20] == 0x120);
static_assert(kAlphabet.character[0xAD] == 0x143);

}  // namespace

void AppendAsAlphabet(absl::string_view bytes, std::string* out) {
  for (const char byte : bytes) {
    AppendUtf8(kAlphabet.character[static_cast<unsigned char>(byte)], out);
  }
}

std::optional<std::string> BytesOfAlphabet(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    if (c.value >= kAlphabet.byte.size() || kAlphabet.byte[c.value] < 0) {
      return std::nullopt;
    }
    out.push_back(static_cast<char>(kAlphabet.byte[c.value]));
    at += c.bytes;
  }
  return out;
}

}  // namespace millrace::model
