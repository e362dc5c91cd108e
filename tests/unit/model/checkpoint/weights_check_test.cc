// Every value that is not finite is found and named with its file and tensor;
// provoked by writing NaN, infinite scales and zeros into tiny models.
#include "model/checkpoint/weights_check.h"

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/spec/model_costs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::model {
namespace {

using ::millrace::kernels::WeightFormat;
using ::millrace::testing::ForFormat;
using ::millrace::testing::GgufWriter;
using ::millrace::testing::kTinyFamilies;
using ::millrace::testing::MakeTinyGguf;
using ::millrace::testing::TempDir;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool GoOn(int64_t) { return true; }

WeightsCheck CheckOf(const GgufWriter& writer) {
  TempDir dir;
  const auto checkpoint = Checkpoint::Open(dir.Write("m.gguf", writer.Build()));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto check = CheckWeights(**checkpoint, GoOn);
  EXPECT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->bytes, CostsOf((*checkpoint)->spec()).stored_bytes);
  return *check;
}

TEST(WeightsCheck, TinyModelsAreWhole) {
  for (const TinyFamily family : kTinyFamilies) {
    TinyModel model;
    model.family = family;
    model.num_layers = 1;
    EXPECT_THAT(CheckOf(MakeTinyGguf(model)).damage, IsEmpty());
  }
}

TEST(WeightsCheck, FindsOneBadScaleInEveryFormat) {
  for (const WeightFormat format : testing::GgufFormats()) {
    SCOPED_TRACE(kernels::TraitsOf(format).name);
    TinyModel model = ForFormat(TinyFamily::kLlama, format);
    model.num_layers = 1;
    GgufWriter writer = MakeTinyGguf(model);
    std::string& data = writer.Tensor("blk.0.ffn_up.weight").data;
    const size_t row =
        data.size() / static_cast<size_t>(model.intermediate_size);
    // All ones at both ends of a block: every format has its scale at one.
    const auto block =
        static_cast<size_t>(kernels::TraitsOf(format).block_bytes);
    for (const size_t at : {3 * row, 3 * row + block - 2}) {
      std::memset(data.data() + at, 0xFF, 2);
    }
    if (format == WeightFormat::kF32) {
      std::memset(data.data() + 3 * row, 0xFF, 4);
    }
    const WeightsCheck check = CheckOf(writer);
    ASSERT_EQ(check.damage.size(), 1u);
    EXPECT_EQ(check.damage[0].tensor, "blk.0.ffn_up.weight");
    EXPECT_THAT(check.damage[0].file, HasSubstr("m.gguf"));
    EXPECT_THAT(check.damage[0].why, HasSubstr("row 3 "));
  }
}

TEST(WeightsCheck, FindsNormsOfZeros) {
  TinyModel model;
  model.num_layers = 1;
  GgufWriter writer = MakeTinyGguf(model);
  writer.Tensor("output_norm.weight").data.assign(256, '\0');
  const WeightsCheck check = CheckOf(writer);
  ASSERT_EQ(check.damage.size(), 1u);
  EXPECT_THAT(check.damage[0].why, HasSubstr("zeros"));
}

TEST(WeightsCheck, EndsWhenAsked) {
  TinyModel model;
  model.num_layers = 1;
  TempDir dir;
  WriteTinyFolder(model, dir.path());
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok());
  int calls = 0;
  const auto check =
      CheckWeights(**checkpoint, [&](int64_t) { return ++calls < 3; });
  EXPECT_EQ(check.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace millrace::model
