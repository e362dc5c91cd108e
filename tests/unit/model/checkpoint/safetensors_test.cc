// A safetensors folder is read as written, and every wrong length, offset,
// shape, type, name or index entry is refused with file and tensor named;
// provoked by changing one thing in a valid folder.
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/safetensors_file.h"
#include "model/checkpoint/safetensors_folder.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"

namespace millrace::model {
namespace {

using ::millrace::testing::GgufU64;
using ::millrace::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two tensors of 16 and 8 bytes.
constexpr char kHeader[] =
    R"({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},)"
    R"( "b": {"dtype": "BF16", "shape": [4], "data_offsets": [16, 24]}})";

std::string FileOf(const std::string& header, size_t data_bytes = 24) {
  return GgufU64(header.size()) + header + std::string(data_bytes, 'x');
}

absl::StatusOr<SafetensorsHeader> ReadBytes(const std::string& bytes) {
  TempDir dir;
  const auto file =
      RandomAccessFile::Open(dir.Write("model.safetensors", bytes));
  EXPECT_TRUE(file.ok());
  return ReadSafetensorsHeader(**file);
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string out = kHeader;
  const size_t at = out.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return out.replace(at, from.size(), to);
}

TEST(SafetensorsFile, ReadsWhatWasWritten) {
  const auto header = ReadBytes(FileOf(std::string(kHeader) + "   "));
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->tensors.size(), 2u);
  const StoredTensor& b = header->tensors[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.format, kernels::WeightFormat::kBf16);
  EXPECT_THAT(b.shape, ElementsAre(4));
  EXPECT_EQ(b.bytes, 8);
  EXPECT_EQ(b.offset, header->header_bytes + 16);
  EXPECT_TRUE(header->gap.ok());
}

TEST(SafetensorsFile, AcceptsScalarsEmptyTensorsAndMetadata) {
  const auto header = ReadBytes(FileOf(
      R"({"__metadata__": {"format": "pt"},
          "s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
          "e": {"dtype": "I64", "shape": [0, 3], "data_offsets": [4, 4]}})",
      4));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(header->gap.ok()) << header->gap;
  EXPECT_EQ(header->tensors.size(), 2u);
}

struct Wrong {
  std::string bytes;
  const char* must_say;
};

TEST(SafetensorsFile, RefusesByTensor) {
  const std::string valid = FileOf(kHeader);
  const std::string huge = "18446744073709551608, 18446744073709551616";
  for (const Wrong& wrong : std::vector<Wrong>{
           {"", "header"},
           {"1234", "header"},
           {valid.substr(0, 40), "header"},
           {valid.substr(0, 8 + sizeof(kHeader) - 1), "'a'"},
           {valid.substr(0, valid.size() - 1), "'b'"},
           {GgufU64(0) + valid.substr(8), "header"},
           {GgufU64(1ull << 63) + valid.substr(8), "header"},
           {GgufU64(UINT64_MAX) + valid.substr(8), "header"},
           {GgufU64(sizeof(kHeader) - 2) + valid.substr(8), "header"},
           {FileOf("[1, 2]"), "header"},
           {FileOf("{\"\xff\": 1}"), "header"},
           {FileOf("{\"a\": " + std::string(100, '[') + std::string(100, ']') +
                   "}"),
            "header"},
           {FileOf(Replaced("\"b\": {", "\"a\": {")), "twice"},
           {FileOf(Replaced("[16, 24]", "[24, 32]")), "'b'"},
           {FileOf(Replaced("[16, 24]", "[24, 16]")), "'b'"},
           {FileOf(Replaced("[16, 24]", "[-8, 0]")), "'b'"},
           {FileOf(Replaced("[16, 24]", "[16.5, 24.5]")), "'b'"},
           {FileOf(Replaced("[16, 24]", "[16, 24, 32]")), "'b'"},
           {FileOf(Replaced("[16, 24]", "[" + huge + "]")), "'b'"},
           {FileOf(Replaced("[16, 24]", "[8, 16]")), "overlaps"},
           {FileOf(Replaced("BF16", "F17")), "F17"},
           {FileOf(Replaced("BF16", "F32")), "'b'"},
           {FileOf(Replaced("\"dtype\": \"BF16\", ", "")), "dtype"},
           {FileOf(Replaced("[4]", "[4294967296, 4294967296, 4096]")), "'b'"},
           {FileOf(Replaced("[4]", "[-4]")), "'b'"},
           {FileOf(Replaced("[4]", "[\"4\"]")), "'b'"},
           {FileOf(Replaced("[4]", "4")), "'b'"},
           {FileOf(Replaced("\"shape\": [4], ", "")), "shape"},
       }) {
    const auto header = ReadBytes(wrong.bytes);
    ASSERT_FALSE(header.ok()) << wrong.bytes.substr(0, 300);
    EXPECT_EQ(ExitCodeOf(header.status()), 4);
    EXPECT_THAT(std::string(header.status().message()),
                HasSubstr(wrong.must_say));
  }
}

TEST(SafetensorsFile, FindsGaps) {
  for (const std::string& bytes :
       {FileOf(kHeader, 32), FileOf(Replaced("[16, 24]", "[24, 32]"), 32)}) {
    const auto header = ReadBytes(bytes);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_FALSE(header->gap.ok());
  }
}

class Folder : public ::testing::Test {
 protected:
  Folder() {
    one_ = FileOf(
        R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})",
        16);
    two_ = FileOf(
        R"({"b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 8);
    dir_.Write("one", one_);
    dir_.Write("two", two_);
  }
  absl::StatusOr<WeightFiles> WithMap(const std::string& map) {
    dir_.Write("model.safetensors.index.json", "{\"weight_map\": " + map + "}");
    return OpenSafetensorsFolder(dir_.path());
  }
  TempDir dir_;
  std::string one_, two_;
};

TEST_F(Folder, IndexNamesFiles) {
  const auto files = WithMap(R"({"a": "one", "b": "two"})");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->files.size(), 2u);
  EXPECT_EQ(files->tensors.Find("b")->file_index, 1);
  const auto matrix = files->tensors.TakeVector("a", 4);
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->source.bytes, 16);
}

TEST_F(Folder, TensorOutsideTheMapDoesNotExist) {
  dir_.Write("two", FileOf(kHeader));
  const auto files = WithMap(R"({"a": "one", "b": "two"})");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->tensors.Find("a")->file_index, 0);
}

TEST_F(Folder, RefusesWhatLeavesTheFolder) {
  for (const char* name :
       {"../one", "/etc/passwd", "x/one", "", ".", "..", "a\\\\b"}) {
    const auto files =
        WithMap(std::string(R"({"a": ")") + name + "\", \"b\": \"two\"}");
    ASSERT_FALSE(files.ok()) << name;
    EXPECT_THAT(std::string(files.status().message()),
                HasSubstr("index.json: weight_map.a"));
  }
}

TEST_F(Folder, RefusesByFileAndTensor) {
  for (const auto& [map, must_say] :
       std::vector<std::pair<std::string, std::string>>{
           {R"({"a": "one", "b": 7})", "weight_map.b"},
           {R"({"a": "one", "b": "three"})", "three"},
           {R"({"a": "two", "b": "two"})", "'a'"},
           {"[]", "weight_map"},
           {"{\"a\"", "JSON"}}) {
    const auto files = WithMap(map);
    ASSERT_FALSE(files.ok()) << map;
    EXPECT_EQ(ExitCodeOf(files.status()), 4);
    EXPECT_THAT(std::string(files.status().message()), HasSubstr(must_say));
  }
}

TEST_F(Folder, LoopOfLinksIsRefused) {
  std::filesystem::create_symlink("three", dir_.File("three"));
  EXPECT_FALSE(WithMap(R"({"a": "one", "b": "three"})").ok());
}

TEST_F(Folder, TakeChecksShapeAndType) {
  dir_.Write("two", FileOf(R"({"b": {"dtype": "F8_E4M3", "shape": [2, 4],
                                     "data_offsets": [0, 8]}})",
                           8));
  const auto files = WithMap(R"({"a": "one", "b": "two"})");
  ASSERT_TRUE(files.ok());
  const auto type = files->tensors.TakeMatrix("b", 2, 4);
  EXPECT_THAT(std::string(type.status().message()), HasSubstr("F8_E4M3"));
  const auto shape = files->tensors.TakeMatrix("b", 4, 2);
  EXPECT_THAT(std::string(shape.status().message()), HasSubstr("[2, 4]"));
  const auto missing = files->tensors.TakeMatrix("c", 4, 2);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("'c' is missing"));
}

}  // namespace
}  // namespace millrace::model
