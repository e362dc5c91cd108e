#include "base/crc32c.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

#include <cstring>

namespace millrace {

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

#if defined(__x86_64__)
uint32_t Step(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
}
uint32_t Step(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
#else
uint32_t Step(uint32_t crc, uint64_t word) { return __crc32cd(crc, word); }
uint32_t Step(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
#endif

}  // namespace

bool Crc32cHasInstruction() {
#if defined(__x86_64__)
  unsigned a;
  unsigned b;
  unsigned c;
  unsigned d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
#else
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

uint32_t Crc32cByInstruction(uint32_t crc, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    crc = Step(crc, word);
  }
  for (; size > 0; --size, ++bytes) {
    crc = Step(crc, *bytes);
  }
  return ~crc;
}

#else

bool Crc32cHasInstruction() { return false; }

uint32_t Crc32cByInstruction(uint32_t crc, const void* data, size_t size) {
  return Crc32cPortable(crc, data, size);
}

#endif

}  // namespace millrace
