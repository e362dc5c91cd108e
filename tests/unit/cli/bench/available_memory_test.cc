// What the system says of its memory; provoked by files of other systems.
#include "cli/bench/available_memory.h"

#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

TEST(AvailableMemoryTest, ReadsTheLineOfTheKernel) {
  EXPECT_EQ(ReadMemAvailable("MemTotal:  20 kB\nMemFree: 1 kB\n"
                             "MemAvailable:   12 kB\n"),
            12 * 1024);
  EXPECT_EQ(ReadMemAvailable("MemTotal:  20 kB\n"), 0);
  EXPECT_EQ(ReadMemAvailable("MemAvailable: many kB\n"), 0);
  EXPECT_EQ(ReadMemAvailable("MemAvailable: 99999999999999999999 kB\n"), 0);
  EXPECT_EQ(ReadMemAvailable(""), 0);
}

TEST(AvailableMemoryTest, AGroupLeavesItsLimitLessItsUse) {
  EXPECT_EQ(ReadGroupRoom("1000\n", "300\n"), 700);
  EXPECT_EQ(ReadGroupRoom("1000\n", "1300\n"), 0);
  EXPECT_EQ(ReadGroupRoom("max\n", "300\n"), -1);
  EXPECT_EQ(ReadGroupRoom("", ""), -1);
}

TEST(AvailableMemoryTest, ThisMachineHasSome) {
  EXPECT_GT(AvailableMemory(), 0);
}

}  // namespace
}  // namespace millrace::cli
