// Ids and texts equal those of the reference libraries, line by line; a wrong
// merge, split, flag or decoding step fails the line that holds it. The small
// vocabularies beside this tree run always. MILLRACE_REFERENCE_DIR may name a
// folder with larger ones: golden-tokenizers/NAME.jsonl and beside it NAME.json
// or NAME.gguf.
#include "tests/unit/model/tokenizer/reference_rows.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "model/tokenizer/open.h"

namespace millrace::model {
namespace {

std::unique_ptr<Tokenizer> Load(const std::string& path) {
  auto tokenizer = OpenTokenizer(path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

void Check(const std::string& model, const std::string& rows) {
  const absl::Time start = absl::Now();
  const std::unique_ptr<Tokenizer> tokenizer = Load(model);
  ASSERT_NE(tokenizer, nullptr);
  const absl::Time loaded = absl::Now();
  const RowResults results = RunReferenceRows(*tokenizer, rows);
  std::cout << rows << ": " << results.passed << " passed, "
            << results.failures.size() << " failed, " << results.newer
            << " newer; load " << loaded - start << ", rows "
            << absl::Now() - loaded << "\n";
  EXPECT_GT(results.passed, 0);
  EXPECT_TRUE(results.failures.empty())
      << results.failures.size() << " lines, first:\n"
      << absl::StrJoin(
             results.failures.begin(),
             results.failures.begin() +
                 std::min<std::ptrdiff_t>(12, std::ssize(results.failures)),
             "\n");
}

class SmallVocabulary : public ::testing::TestWithParam<const char*> {};

TEST_P(SmallVocabulary, GivesTheReferenceIds) {
  const std::string base = absl::StrCat(MILLRACE_TEST_DATA_DIR, "/tokenizers/");
  Check(absl::StrCat(base, GetParam(), ".json"),
        absl::StrCat(base, GetParam(), ".jsonl"));
}

TEST_P(SmallVocabulary, GivesTheSameIdsFromGguf) {
  const std::string base = absl::StrCat(MILLRACE_TEST_DATA_DIR, "/tokenizers/");
  const std::string gguf = absl::StrCat(base, GetParam(), ".gguf");
  if (!std::filesystem::exists(gguf)) {
    GTEST_SKIP() << "has no GGUF form";
  }
  Check(gguf, absl::StrCat(base, GetParam(), ".jsonl"));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SmallVocabulary,
                         ::testing::Values("tiny-bytebpe", "tiny-flags",
                                           "tiny-spm"));

TEST(LargeVocabulary, GivesTheReferenceIds) {
  const char* root = std::getenv("MILLRACE_REFERENCE_DIR");
  if (root == nullptr) {
    GTEST_SKIP() << "MILLRACE_REFERENCE_DIR is not set";
  }
  const std::filesystem::path folder =
      std::filesystem::path(root) / "golden-tokenizers";
  std::error_code error;
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path rows = entry.path();
    if (rows.extension() != ".jsonl") {
      continue;
    }
    for (const char* extension : {".json", ".gguf"}) {
      std::filesystem::path model = rows;
      model.replace_extension(extension);
      if (std::filesystem::exists(model, error)) {
        Check(model.string(), rows.string());
        ++checked;
      }
    }
  }
  ASSERT_FALSE(error) << folder << ": " << error.message();
  if (checked == 0) {
    GTEST_SKIP() << folder << " holds no vocabulary NAME.json or NAME.gguf "
                 << "beside its NAME.jsonl";
  }
}

}  // namespace
}  // namespace millrace::model
