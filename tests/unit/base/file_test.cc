// A file that is written anew is the old or the new one, whole, for the same
// people; what cannot be replaced stays what it is. Provoked with links, modes,
// pipes and a device that is always full.
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace millrace {
namespace {

using ::millrace::testing::TempDir;
using ::testing::HasSubstr;

constexpr int64_t kMost = 1 << 20;

size_t EntriesOf(const std::string& folder) {
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(folder)) {
    ++entries;
  }
  return entries;
}

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(WriteFile, ReplacesTheContentAndLeavesNothingBeside) {
  TempDir dir;
  const std::string path = dir.Write("session.json", "the old one");
  ASSERT_TRUE(WriteFileAtomically(path, std::string("new")).ok());
  EXPECT_EQ(ReadFile(path, kMost).value(), "new");
  EXPECT_EQ(EntriesOf(dir.path()), 1u);
}

TEST(WriteFile, KeepsWhatWasPrivatePrivate) {
  TempDir dir;
  const std::string path = dir.Write("session.json", "");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(WriteFileAtomically(path, std::string("secret")).ok());
  EXPECT_EQ(ModeOf(path), 0600u);
}

TEST(WriteFile, WritesThroughALink) {
  TempDir dir;
  const std::string path = dir.Write("real.json", "old");
  const std::string link = dir.path() + "/link.json";
  std::filesystem::create_symlink(path, link);
  ASSERT_TRUE(WriteFileAtomically(link, std::string("new")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(ReadFile(path, kMost).value(), "new");
}

TEST(WriteFile, DoesNotReplaceAPipe) {
  TempDir dir;
  const std::string path = dir.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(WriteFileAtomically(path, std::string("a plan")).ok());
  char bytes[16] = {};
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 6);
  EXPECT_STREQ(bytes, "a plan");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(WriteFile, SaysThatTheDiskIsFull) {
  const absl::Status status =
      WriteFileAtomically("/dev/full", std::string("a plan"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/dev/full: writing failed: No space left"));
  EXPECT_THAT(HintOf(status), HasSubstr("room"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(ReadFile, NamesAnEmptyPath) {
  EXPECT_THAT(std::string(ReadFile("", kMost).status().message()),
              HasSubstr("'': cannot be opened: No such file"));
  EXPECT_THAT(std::string(WriteFileAtomically("", {}).message()),
              HasSubstr("'': "));
}

}  // namespace
}  // namespace millrace
