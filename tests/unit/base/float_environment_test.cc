// Computing threads round to nearest and keep subnormals and NaN; provoked by
// setting everything in the control register that a library could have set.

#include "base/float_environment.h"

#include <cfenv>
#include <cfloat>
#include <cstdint>

#include "gtest/gtest.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace millrace {
namespace {

// The bits that must not be set, one at a time: those every processor of the
// architecture has.
#if defined(__x86_64__)
constexpr uint64_t kFlags[] = {1u << 15, 1u << 6, 1u << 13, 1u << 14};
void SetFlag(uint64_t flag) {
  _mm_setcsr(_mm_getcsr() | static_cast<uint32_t>(flag));
}
#elif defined(__aarch64__)
constexpr uint64_t kFlags[] = {1u << 22, 1u << 23, 1u << 24, 1u << 25,
                               1u << 26};
void SetFlag(uint64_t flag) {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  value |= flag;
  asm volatile("msr fpcr, %0" : : "r"(value));
}
#endif

float Quotient(float a, float b) {
  volatile float x = a;
  volatile float y = b;
  return x / y;
}

TEST(FloatEnvironment, ClearsEveryFlagThatChangesResults) {
  SetFloatEnvironment();
  ASSERT_TRUE(FloatEnvironmentIsStrict());
  for (const uint64_t flag : kFlags) {
    SetFlag(flag);
    EXPECT_FALSE(FloatEnvironmentIsStrict()) << std::hex << flag;
    SetFloatEnvironment();
    EXPECT_TRUE(FloatEnvironmentIsStrict()) << std::hex << flag;
  }
}

TEST(FloatEnvironment, ResultsFollow) {
  for (const uint64_t flag : kFlags) {
    SetFlag(flag);
  }
  EXPECT_EQ(Quotient(FLT_MIN, 2), 0);
  SetFloatEnvironment();
  EXPECT_EQ(Quotient(FLT_MIN, 2), 0x1p-127f);
  EXPECT_EQ(Quotient(0x1p-127f, 0x1p-127f), 1);
  std::fesetround(FE_DOWNWARD);
  EXPECT_EQ(Quotient(1, 3), 0x1.555554p-2f);
  SetFloatEnvironment();
  EXPECT_EQ(Quotient(1, 3), 0x1.555556p-2f);
  std::fesetround(FE_TONEAREST);
}

}  // namespace
}  // namespace millrace
