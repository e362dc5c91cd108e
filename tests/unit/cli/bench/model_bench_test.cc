// What a benchmark of a model promises of lengths, provoked by loads that need
// less than the model's context.
#include "cli/bench/model_bench.h"

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::cli {
namespace {

TEST(ModelBenchTest, LengthsStayAsTheyAreOnceLoadsAreKnown) {
  const testing::TempDir folder;
  testing::TinyModel model;
  model.context_length = 512;
  testing::WriteTinyFolder(model, folder.path());
  ModelBenchFlags flags;
  flags.model = folder.path();
  flags.compute.threads = 1;
  const auto bench = ModelBench::Open(flags);
  ASSERT_TRUE(bench.ok()) << bench.status();
  EXPECT_EQ((*bench)->LengthOr({}, 24), 24);
  EXPECT_EQ((*bench)->LengthOr({}, 300), 128);
  EXPECT_EQ((*bench)->LengthOr(300, 24), 300);
  Console console(true);
  const absl::Status started = (*bench)->Start(
      {{.batch = 2, .prompt_len = 8, .output_len = 24}}, console);
  ASSERT_TRUE(started.ok()) << started;
  EXPECT_LT((*bench)->compute().context, 100);
  EXPECT_EQ((*bench)->LengthOr({}, 24), 24);
}

}  // namespace
}  // namespace millrace::cli
