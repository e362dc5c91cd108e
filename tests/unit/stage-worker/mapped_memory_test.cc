#include "stage-worker/runtime/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::worker {
namespace {

using ::testing::HasSubstr;

int64_t ResidentPages(const MappedMemory& memory) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages(
      static_cast<size_t>((memory.bytes() + page - 1) / page));
  EXPECT_EQ(
      mincore(memory.data(), static_cast<size_t>(memory.bytes()), pages.data()),
      0);
  return std::count_if(pages.begin(), pages.end(),
                       [](unsigned char flags) { return (flags & 1) != 0; });
}

// Touching makes every page resident; of a size that is no multiple of what a
// thread takes at once.
TEST(MappedMemory, TouchMakesAllResident) {
  ThreadPool pool(3);
  const int64_t page = sysconf(_SC_PAGESIZE);
  MappedMemory memory =
      MappedMemory::Map((int64_t{21} << 20) + 3 * page).value();
  EXPECT_LT(ResidentPages(memory), memory.bytes() / page);
  ASSERT_TRUE(memory.Touch(pool, nullptr).ok());
  EXPECT_EQ(ResidentPages(memory), memory.bytes() / page);
}

// Each thread asks before every few MiB, so that touching ends early.
TEST(MappedMemory, TouchEndsWhereItIsCancelled) {
  ThreadPool pool(2);
  MappedMemory memory = MappedMemory::Map(int64_t{256} << 20).value();
  std::atomic<int> asked{0};
  const absl::Status status =
      memory.Touch(pool, [&] { return asked.fetch_add(1) >= 4; });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_LE(asked, 6);
  const int64_t page = sysconf(_SC_PAGESIZE);
  EXPECT_LT(ResidentPages(memory), memory.bytes() / page / 4);
}

// What helps is the caller's to say: not everybody has layers to give away.
TEST(MappedMemory, TheRemedyIsTheCallers) {
  const int64_t too_much = int64_t{1} << 60;
  const absl::Status status =
      MappedMemory::Map(too_much, "buy a larger machine").status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(HintOf(status), "buy a larger machine");
  EXPECT_THAT(HintOf(MappedMemory::Map(too_much).status()),
              HasSubstr("ulimit -v"));
}

}  // namespace
}  // namespace millrace::worker
