#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace millrace {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;

// table[k][b]: the effect of byte b followed by k zero bytes.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    }
    table[0][b] = crc;
  }
  for (int k = 1; k < 8; ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      const uint32_t before = table[k - 1][b];
      table[k][b] = (before >> 8) ^ table[0][before & 0xFF];
    }
  }
  return table;
}();

// A linear map over GF(2)^32 as the images of the 32 unit vectors.
using BitMatrix = std::array<uint32_t, 32>;

uint32_t Apply(const BitMatrix& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (int bit = 0; vector != 0; vector >>= 1, ++bit) {
    if ((vector & 1) != 0) {
      sum ^= matrix[bit];
    }
  }
  return sum;
}

BitMatrix Square(const BitMatrix& matrix) {
  BitMatrix out;
  for (int bit = 0; bit < 32; ++bit) {
    out[bit] = Apply(matrix, matrix[bit]);
  }
  return out;
}

}  // namespace

uint32_t Crc32cPortable(uint32_t crc, const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint32_t low;
    uint32_t high;
    std::memcpy(&low, bytes, 4);
    std::memcpy(&high, bytes + 4, 4);
    low ^= crc;
    crc = kTables[7][low & 0xFF] ^ kTables[6][(low >> 8) & 0xFF] ^
          kTables[5][(low >> 16) & 0xFF] ^ kTables[4][low >> 24] ^
          kTables[3][high & 0xFF] ^ kTables[2][(high >> 8) & 0xFF] ^
          kTables[1][(high >> 16) & 0xFF] ^ kTables[0][high >> 24];
  }
  for (; size > 0; --size, ++bytes) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xFF];
  }
  return ~crc;
}

uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b) {
  // Shifting crc_a over size_b zero bytes by repeated squaring of the map
  // "one zero bit". The pre- and post-inversions cancel.
  BitMatrix shift;
  shift[0] = kPolynomial;
  for (int bit = 1; bit < 32; ++bit) {
    shift[bit] = 1u << (bit - 1);
  }
  for (int doubling = 0; doubling < 3; ++doubling) {
    shift = Square(shift);
  }
  for (; size_b != 0; size_b >>= 1) {
    if ((size_b & 1) != 0) {
      crc_a = Apply(shift, crc_a);
    }
    shift = Square(shift);
  }
  return crc_a ^ crc_b;
}

uint32_t Crc32c(uint32_t crc, const void* data, size_t size) {
  static const bool has_instruction = Crc32cHasInstruction();
  return has_instruction ? Crc32cByInstruction(crc, data, size)
                         : Crc32cPortable(crc, data, size);
}

}  // namespace millrace
