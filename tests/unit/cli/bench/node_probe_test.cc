// What a product did beside reading its weights, by hand; and what a folder
// must be to be measured, provoked by folders that are not.
#include "cli/bench/node_probe.h"

#include "base/error.h"
#include "cli/bench/disk_probe.h"
#include "cli/bench/model_probe.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace millrace::cli {
namespace {

TEST(NodeProbeTest, WhatReadingDoesNotExplainIsComputing) {
  // Two of three seconds are reading.
  EXPECT_DOUBLE_EQ(RateBesideReading(600, 20, 10, 3), 600);
  // Reading explains all and more: five times what was done.
  EXPECT_DOUBLE_EQ(RateBesideReading(600, 30, 10, 3), 1000);
  EXPECT_DOUBLE_EQ(RateBesideReading(600, 99, 10, 3), 1000);
}

TEST(ModelProbeTest, TheLineThroughTwoPasses) {
  const PassLine line = LineThrough(1, 5, 8, 12);
  EXPECT_DOUBLE_EQ(line.row_s, 1);
  EXPECT_DOUBLE_EQ(line.fixed_s, 4);
  // Noise: more rows took less time, or eight took more than eight passes.
  EXPECT_DOUBLE_EQ(LineThrough(1, 5, 8, 4).row_s, 0.1);
  EXPECT_NEAR(LineThrough(1, 5, 8, 80).fixed_s, 0.1, 1e-12);
}

TEST(DiskProbeTest, FoldersThatCannotBeMeasuredAreNamed) {
  const testing::TempDir folder;
  const absl::StatusOr<NvmeEntry> missing =
      ProbeDisk(folder.path() + "/missing", 1 << 20, true);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(KindOf(missing.status()), ErrorKind::kUsage);
  EXPECT_EQ(ObjectOf(missing.status()), "--nvme");
  // Virtual, with no room for a record.
  const absl::StatusOr<NvmeEntry> none = ProbeDisk("/proc", 1 << 20, true);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(ObjectOf(none.status()), "--nvme");
}

}  // namespace
}  // namespace millrace::cli
