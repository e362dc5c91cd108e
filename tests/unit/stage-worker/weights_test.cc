// Weights that no checkpoint may hold stop the load with an error that names
// tensor and rows; provoked with one scale that is no number.
#include "stage-worker/runtime/weights.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::worker {
namespace {

using ::testing::HasSubstr;

absl::Status LoadOf(const testing::GgufWriter& writer) {
  const testing::TempDir folder;
  const std::string path = folder.File("model.gguf");
  testing::WriteTestFile(path, writer.Build());
  const auto checkpoint = model::Checkpoint::Open(path);
  if (!checkpoint.ok()) {
    return checkpoint.status();
  }
  StageConfig config;
  config.holds_embedding = true;
  config.holds_head = true;
  return Weights::Load(
             **checkpoint, config, [](const LoadProgress&) {},
             [] { return false; })
      .status();
}

TEST(WeightsTest, AnE8m0ScaleThatIsNoNumberIsNamed) {
  testing::TinyModel model = testing::ForFormat(testing::TinyFamily::kLlama,
                                                kernels::WeightFormat::kMxfp4);
  model.num_layers = 1;
  testing::GgufWriter writer = testing::MakeTinyGguf(model);
  EXPECT_TRUE(LoadOf(writer).ok());

  std::string& data = writer.Tensor("blk.0.ffn_down.weight").data;
  const size_t row_bytes = data.size() / static_cast<size_t>(model.hidden_size);
  data[20 * row_bytes] = '\xff';
  const absl::Status status = LoadOf(writer);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("blk.0.ffn_down.weight: rows from 16 hold a scale"));
}

}  // namespace
}  // namespace millrace::worker
