#include "base/float_environment.h"

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace millrace {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kFlushToZero = 1u << 15;
constexpr uint32_t kDenormalsAreZero = 1u << 6;
constexpr uint32_t kRoundingMask = 3u << 13;
constexpr uint32_t kForbidden =
    kFlushToZero | kDenormalsAreZero | kRoundingMask;
#elif defined(__aarch64__)
// FIZ bit 0, AH bit 1, FZ16 bit 19, RMode bits 22-23, FZ bit 24, DN bit 25, AHP
// bit 26.
constexpr uint64_t kForbidden = (1ull << 0) | (1ull << 1) | (1ull << 19) |
                                (3ull << 22) | (1ull << 24) | (1ull << 25) |
                                (1ull << 26);
uint64_t ReadControl() {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
#endif

}  // namespace

void SetFloatEnvironment() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() & ~kForbidden);
#elif defined(__aarch64__)
  const uint64_t value = ReadControl() & ~kForbidden;
  asm volatile("msr fpcr, %0" : : "r"(value));
#endif
}

bool FloatEnvironmentIsStrict() {
#if defined(__x86_64__)
  return (_mm_getcsr() & kForbidden) == 0;
#elif defined(__aarch64__)
  return (ReadControl() & kForbidden) == 0;
#else
  return true;
#endif
}

}  // namespace millrace
