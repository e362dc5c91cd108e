// What the system says of its memory; provoked by made-up files of machines
// with control groups of either version, and of other systems.
#include "cli/bench/available_memory.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/cli/bench/system_tree.h"

namespace millrace::cli {
namespace {

constexpr char kMeminfo[] = "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n";
constexpr char kUnified[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

// The files of a group of version 2.
void WriteGroup(const testing::SystemTree& tree, const std::string& path,
                const std::string& limit, int64_t used, int64_t file_bytes) {
  const std::string folder = "/sys/fs/cgroup" + path;
  tree.Write(folder + "/memory.max", limit + "\n");
  tree.Write(folder + "/memory.current", absl::StrCat(used, "\n"));
  tree.Write(folder + "/memory.stat",
             absl::StrCat("anon 7\nfile ", file_bytes, "\ninactive_file ",
                          file_bytes / 2, "\nactive_file ",
                          file_bytes - file_bytes / 2, "\n"));
}

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
  EXPECT_EQ(ReadGroupRoom("1000\n", "300\n", 0), 700);
  EXPECT_EQ(ReadGroupRoom("1000\n", "1300\n", 0), 0);
  EXPECT_EQ(ReadGroupRoom("1000\n", "300\n", 200), 900);
  EXPECT_EQ(ReadGroupRoom("1000\n", "300\n", 400), 1000);
  EXPECT_EQ(ReadGroupRoom("max\n", "300\n", 0), std::nullopt);
  EXPECT_EQ(ReadGroupRoom("9223372036854771712\n", "300\n", 0), std::nullopt);
  EXPECT_EQ(ReadGroupRoom("", "", 0), std::nullopt);
}

TEST(AvailableMemoryTest, PagesOfFilesOfEitherVersion) {
  EXPECT_EQ(ReadFilePages("file 9\ninactive_file 3\nactive_file 4\n", ""), 7);
  EXPECT_EQ(ReadFilePages("inactive_file 1\nactive_file 1\n"
                          "total_inactive_file 3\ntotal_active_file 4\n",
                          "total_"),
            7);
  EXPECT_EQ(ReadFilePages("inactive_file many\nactive_file -4\n", ""), 0);
}

TEST(AvailableMemoryTest, PageCacheOfAGroupIsNotTaken) {
  const testing::SystemTree tree;
  tree.Write("/proc/meminfo", kMeminfo);
  tree.Write("/proc/self/cgroup", "0::/\n");
  tree.Write("/proc/self/mountinfo", kUnified);
  WriteGroup(tree, "", "5000000", 4900000, 4000001);
  EXPECT_EQ(AvailableMemory(tree.root()), 5000000 - 899999);
}

TEST(AvailableMemoryTest, TheLeastOfTheGroupAndThoseAroundIt) {
  const testing::SystemTree tree;
  tree.Write("/proc/meminfo", kMeminfo);
  tree.Write("/proc/self/cgroup", "0::/outer.slice/inner.scope\n");
  tree.Write("/proc/self/mountinfo", kUnified);
  EXPECT_EQ(AvailableMemory(tree.root()), 8000 * 1024);
  WriteGroup(tree, "/outer.slice", "max", 700, 0);
  WriteGroup(tree, "/outer.slice/inner.scope", "3000000", 500, 0);
  WriteGroup(tree, "/outer.slice/other.scope", "10", 10, 0);
  EXPECT_EQ(AvailableMemory(tree.root()), 3000000 - 500);
  WriteGroup(tree, "/outer.slice", "2000000", 700, 0);
  EXPECT_EQ(AvailableMemory(tree.root()), 2000000 - 700);
  // Where use is slowed is a limit as well.
  tree.Write("/sys/fs/cgroup/outer.slice/inner.scope/memory.high", "1000500");
  EXPECT_EQ(AvailableMemory(tree.root()), 1000000);
}

TEST(AvailableMemoryTest, Version1BesideVersion2) {
  const testing::SystemTree tree;
  tree.Write("/proc/meminfo", kMeminfo);
  tree.Write("/proc/self/cgroup",
             "4:cpu,memory:/pods/a\n3:cpuset:/\n0::/elsewhere\n");
  tree.Write(
      "/proc/self/mountinfo",
      "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  const std::string pods = "/sys/fs/cgroup/memory/pods";
  tree.Write(pods + "/a/memory.limit_in_bytes", "9223372036854771712\n");
  tree.Write(pods + "/a/memory.usage_in_bytes", "600000\n");
  tree.Write(pods + "/memory.limit_in_bytes", "1000000\n");
  tree.Write(pods + "/memory.usage_in_bytes", "900000\n");
  tree.Write(pods + "/memory.stat",
             "inactive_file 1\ntotal_inactive_file 50000\n"
             "total_active_file 20000\n");
  EXPECT_EQ(AvailableMemory(tree.root()), 170000);
}

TEST(AvailableMemoryTest, AContainerSeesItsGroupAtTheMount) {
  const testing::SystemTree tree;
  tree.Write("/proc/meminfo", kMeminfo);
  const std::string memory = "/sys/fs/cgroup/memory";
  tree.Write(memory + "/memory.limit_in_bytes", "1000000\n");
  tree.Write(memory + "/memory.usage_in_bytes", "400000\n");
  tree.Write(memory + "/sub/memory.limit_in_bytes", "500000\n");
  tree.Write(memory + "/sub/memory.usage_in_bytes", "400000\n");
  const auto mounted = [&](const std::string& top) {
    tree.Write("/proc/self/mountinfo",
               "35 31 0:32 " + top + " " + memory +
                   " ro master:5 - cgroup cgroup rw,memory\n");
  };
  mounted("/docker/0abc");
  for (const char* group : {"/docker/0abc", "/docker/0abcd", "/", "/../up"}) {
    tree.Write("/proc/self/cgroup", absl::StrCat("4:memory:", group, "\n"));
    EXPECT_EQ(AvailableMemory(tree.root()), 600000) << group;
  }
  tree.Write("/proc/self/cgroup", "4:memory:/docker/0abc/sub\n");
  EXPECT_EQ(AvailableMemory(tree.root()), 100000);
}

TEST(AvailableMemoryTest, AGroupAloneTellsWhatTheMachineDoesNot) {
  const testing::SystemTree tree;
  EXPECT_EQ(AvailableMemory(tree.root()), 0);
  tree.Write("/proc/self/cgroup", "0::/\n");
  tree.Write("/proc/self/mountinfo", kUnified);
  WriteGroup(tree, "", "5000", 1000, 0);
  EXPECT_EQ(AvailableMemory(tree.root()), 4000);
}

TEST(AvailableMemoryTest, ThisMachineHasSome) {
  EXPECT_GT(AvailableMemory(), 0);
}

}  // namespace
}  // namespace millrace::cli
