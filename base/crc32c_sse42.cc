#include "base/crc32c.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>

#include <cstring>

namespace millrace {

bool Crc32cHasInstruction() {
  unsigned a;
  unsigned b;
  unsigned c;
  unsigned d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}

uint32_t Crc32cSse42(uint32_t crc, const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t state = ~crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto low = static_cast<uint32_t>(state);
  for (; size > 0; --size, ++bytes) {
    low = _mm_crc32_u8(low, *bytes);
  }
  return ~low;
}

}  // namespace millrace

#else

namespace millrace {

bool Crc32cHasInstruction() { return false; }

uint32_t Crc32cSse42(uint32_t crc, const void* data, size_t size) {
  return Crc32cPortable(crc, data, size);
}

}  // namespace millrace

#endif
