// Weights that no checkpoint may hold stop the load with an error that names
// tensor and place; provoked with one scale or code that is no number.
#include "stage-worker/runtime/weights.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::worker {
namespace {

using ::testing::HasSubstr;

absl::Status LoadOf(const std::string& path) {
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

absl::Status LoadOf(const testing::GgufWriter& writer) {
  const testing::TempDir folder;
  return LoadOf(folder.Write("model.gguf", writer.Build()));
}

absl::Status LoadOf(const testing::TinyModel& model,
                    const std::vector<testing::TinySafetensor>& tensors) {
  const testing::TempDir folder;
  folder.Write("config.json", testing::TinyConfigJson(model));
  folder.Write("model.safetensors", testing::SafetensorsFile(tensors));
  return LoadOf(folder.path());
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
              HasSubstr("blk.0.ffn_down.weight: row 20 column 0 has a scale"));
}

TEST(WeightsTest, CodesAndScalesInPartsThatAreNoNumbersAreNamed) {
  struct Place {
    kernels::WeightFormat format;
    std::string tensor;
    size_t offset;
    std::string bytes;
    const char* must_say;
  };
  const std::string down = "model.layers.0.mlp.down_proj.weight";
  // down is [64, 96]: rows of 96 codes, three scales.
  for (const Place& place : std::vector<Place>{
           {kernels::WeightFormat::kFp8, down, 20 * 96 + 5, "\x7f",
            "weight: row 20 column 5 has a code"},
           {kernels::WeightFormat::kFp8, down, 63 * 96 + 95, "\xff",
            "weight: row 63 column 95 has a code"},
           {kernels::WeightFormat::kFp8, down + "_scale_inv", 2, "\xff\xff",
            "weight_scale_inv: row 0 column 0 has a scale"},
           {kernels::WeightFormat::kMxfp4, down + "_scale", 20 * 3 + 1, "\xff",
            "weight_scale: row 20 column 32 has a scale"},
       }) {
    testing::TinyModel model;
    model.format = place.format;
    model.num_layers = 1;
    model.tokenizer = false;
    std::vector<testing::TinySafetensor> tensors =
        testing::TinySafetensors(model);
    EXPECT_TRUE(LoadOf(model, tensors).ok());
    for (testing::TinySafetensor& tensor : tensors) {
      if (tensor.name == place.tensor) {
        tensor.data.replace(place.offset, place.bytes.size(), place.bytes);
      }
    }
    const absl::Status status = LoadOf(model, tensors);
    ASSERT_FALSE(status.ok()) << place.must_say;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("model.layers.0.mlp.down_proj.",
                                       place.must_say)));
  }
}

}  // namespace
}  // namespace millrace::worker
