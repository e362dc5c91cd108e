// Options of benchmarks: lists are read whole or refused by name.
#include "base/error.h"
#include "cli/bench/bench_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

using kernels::ComputeMode;
using kernels::WeightFormat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Result>
void ExpectRefused(const Result& result, absl::string_view option,
                   const std::string& word) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(KindOf(result.status()), ErrorKind::kUsage);
  EXPECT_EQ(ObjectOf(result.status()), option);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(word));
}

TEST(BenchOptionsTest, Formats) {
  EXPECT_THAT(ParseFormats("q8_0,f16").value(),
              ElementsAre(WeightFormat::kQ8_0, WeightFormat::kF16));
  EXPECT_EQ(ParseFormats("").value().size(),
            static_cast<size_t>(kernels::kNumWeightFormats));
  ExpectRefused(ParseFormats("q8_0,q9"), "--format", "q9");
  ExpectRefused(ParseFormats("q8_0,"), "--format", "''");
  ExpectRefused(ParseFormats("q8_0,q8_0"), "--format", "twice");
}

TEST(BenchOptionsTest, Modes) {
  EXPECT_THAT(ParseComputes("exact,fast").value(),
              ElementsAre(ComputeMode::kExact, ComputeMode::kFast));
  ExpectRefused(ParseComputes("slow"), "--compute", "slow");
}

TEST(BenchOptionsTest, Counts) {
  EXPECT_THAT(ParseCounts("--batch", "1,4,4096", 4096).value(),
              ElementsAre(1, 4, 4096));
  ExpectRefused(ParseCounts("--batch", "", 9), "--batch", "no number");
  ExpectRefused(ParseCounts("--batch", "1,0", 9), "--batch", "0");
  ExpectRefused(ParseCounts("--batch", "10", 9), "--batch", "10");
}

}  // namespace
}  // namespace millrace::cli
