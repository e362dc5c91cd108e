// All last caches are counted and each once; provoked by made-up processors.
#include "cli/bench/last_cache.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/cli/bench/system_tree.h"

namespace millrace::cli {
namespace {

constexpr int64_t kKiB = 1024;

struct Cache {
  int level;
  const char* size;
  const char* cpus;
};

void WriteCpu(const testing::SystemTree& tree, int cpu,
              const std::vector<Cache>& caches) {
  int index = 0;
  for (const Cache& cache : caches) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                                            "/cache/index", index++);
    tree.Write(folder + "/level", absl::StrCat(cache.level, "\n"));
    tree.Write(folder + "/size", absl::StrCat(cache.size, "\n"));
    tree.Write(folder + "/shared_cpu_list", absl::StrCat(cache.cpus, "\n"));
  }
}

TEST(LastCacheTest, CachesOfThirdLevelOncePerSetOfProcessors) {
  const testing::SystemTree tree;
  WriteCpu(tree, 0, {{1, "32K", "0"}, {2, "512K", "0"}, {3, "100K", "0-1"}});
  WriteCpu(tree, 1, {{1, "32K", "1"}, {2, "512K", "1"}, {3, "100K", "0-1"}});
  WriteCpu(tree, 12, {{2, "512K", "12"}, {3, "300K", "12,14"}});
  WriteCpu(tree, 14, {{2, "512K", "14"}, {3, "300K", "12,14"}});
  tree.Write("/sys/devices/system/cpu/cpufreq/cache/index0/level", "9\n");
  EXPECT_EQ(ReadLastCaches(tree.root()), 400 * kKiB);
}

TEST(LastCacheTest, TheSecondLevelWhereItIsTheLast) {
  const testing::SystemTree tree;
  WriteCpu(tree, 0, {{1, "32K", "0"}, {2, "2048K", "0-3"}});
  WriteCpu(tree, 1, {{1, "32K", "1"}, {2, "2048K", "0-3"}});
  EXPECT_EQ(ReadLastCaches(tree.root()), 2048 * kKiB);
}

TEST(LastCacheTest, NothingIsMadeUp) {
  const testing::SystemTree tree;
  EXPECT_EQ(ReadLastCaches(tree.root()), 0);
  WriteCpu(tree, 0, {{3, "much", "0"}});
  WriteCpu(tree, 1, {{3, "-5K", "1"}});
  WriteCpu(tree, 2, {{3, "99999999999999999999K", "2"}});
  EXPECT_EQ(ReadLastCaches(tree.root()), 0);
}

TEST(LastCacheTest, NeverLessThanTheCLibrarySays) {
  const testing::SystemTree tree;
  const int64_t said = LastCachesBytes(tree.root());
  EXPECT_GE(said, 0);
  WriteCpu(tree, 0, {{3, "1K", "0"}});
  EXPECT_GE(LastCachesBytes(tree.root()), std::max(said, kKiB));
}

}  // namespace
}  // namespace millrace::cli
