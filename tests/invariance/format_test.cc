// The bits of every answer stay the same for weights of every format, of GGUF
// and packed in safetensors, dense and with experts: every value of every
// dimension alone and every pair of values. A kernel of one format that sums in
// another order shows, and so does a stage that reads other rows.
#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "kernels/quant/weight_format.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/invariance/invariance_check.h"
#include "tests/invariance/small_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::testing {
namespace {

using kernels::WeightFormat;

using Parameter = std::tuple<TinyFamily, WeightFormat>;

void CheckEveryValueAndPair(const TinyModel& model, const std::string& path) {
  const auto checkpoint = model::Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Workload workload = MakeWorkload({.vocab_size = model.vocab_size,
                                          .prompt_tokens = 21,
                                          .tokens_max = 3,
                                          .other_prompt_max = 2,
                                          .other_tokens_max = 3});
  InvarianceCheck check(**checkpoint, workload);
  check.RunDefaultKv(EveryValueAndPair(AllDimensions(model.num_layers)));
}

std::string NameOf(const ::testing::TestParamInfo<Parameter>& info) {
  return std::string(TinyFamilyName(std::get<0>(info.param))) + "_" +
         kernels::TraitsOf(std::get<1>(info.param)).name;
}

class FormatTest : public ::testing::TestWithParam<Parameter> {};

TEST_P(FormatTest, EveryValueAndPair) {
  const auto [family, format] = GetParam();
  const TinyModel model = SmallModel(family, format);
  const TempDir folder;
  const std::string path = folder.File("model.gguf");
  WriteTinyGguf(model, path);
  CheckEveryValueAndPair(model, path);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, FormatTest,
    ::testing::Combine(::testing::Values(TinyFamily::kLlama,
                                         TinyFamily::kQwen3Moe),
                       ::testing::ValuesIn(GgufFormats())),
    NameOf);

class PackedTest : public ::testing::TestWithParam<Parameter> {};

TEST_P(PackedTest, EveryValueAndPair) {
  const auto [family, format] = GetParam();
  const TinyModel model = SmallModel(family, format);
  const TempDir folder;
  WriteTinyFolder(model, folder.path());
  CheckEveryValueAndPair(model, folder.path());
}

INSTANTIATE_TEST_SUITE_P(
    Packed, PackedTest,
    ::testing::Combine(::testing::Values(TinyFamily::kLlama,
                                         TinyFamily::kQwen3Moe),
                       ::testing::ValuesIn(PackedFormats())),
    NameOf);

}  // namespace
}  // namespace millrace::testing
