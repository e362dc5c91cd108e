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
  EXPECT_DOUBLE_EQ(RateBesideReading(600, 20, 10, absl::Seconds(3)), 600);
  // Reading explains all and more: five times what was done.
  EXPECT_DOUBLE_EQ(RateBesideReading(600, 30, 10, absl::Seconds(3)), 1000);
  EXPECT_DOUBLE_EQ(RateBesideReading(600, 99, 10, absl::Seconds(3)), 1000);
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
  EXPECT_EQ(KindOf(none.status()), ErrorKind::kUsage);
  EXPECT_EQ(ObjectOf(none.status()), "--nvme");
}

TEST(DiskProbeTest, WritesABoundedFileOfRecords) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  constexpr int64_t kMuch = int64_t{1} << 40;
  EXPECT_EQ(DiskFileBytes(4 * kMiB, kMuch, true), 256 * kMiB);
  EXPECT_EQ(DiskFileBytes(4 * kMiB, kMuch, false), 1024 * kMiB);
  EXPECT_EQ(DiskFileBytes(65 * kMiB, kMuch, true), 260 * kMiB);
  EXPECT_EQ(DiskFileBytes(kRecordBytesMax, kMuch, true), 1024 * kMiB);
  EXPECT_EQ(DiskFileBytes(kRecordBytesMax, kMuch, false), 1024 * kMiB);
  // Half of what is free, in whole pieces.
  EXPECT_EQ(DiskFileBytes(4 * kMiB, 101 * kMiB, true), 48 * kMiB);
}

TEST(DiskProbeTest, NeedsTwiceTwoRecordsFree) {
  for (const int64_t record :
       {int64_t{1}, int64_t{4096}, int64_t{5} << 20, kRecordBytesMax}) {
    const int64_t least = DiskFileLeast(record);
    EXPECT_GE(least, 2 * record);
    EXPECT_EQ(DiskFileBytes(record, 2 * least, true), least);
    EXPECT_EQ(DiskFileBytes(record, 2 * least - 1, true), 0);
  }
  EXPECT_EQ(DiskFileLeast(1), int64_t{4} << 20);
}

}  // namespace
}  // namespace millrace::cli
