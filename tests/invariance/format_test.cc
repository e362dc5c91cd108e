// The bits of every answer stay the same for weights of every format of GGUF,
// dense and with experts: every value of every dimension alone and every pair
// of values. A kernel of one format that sums in another order shows.
#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "kernels/quant/weight_format.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/invariance/invariance_check.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::testing {
namespace {

using kernels::WeightFormat;

TinyModel SmallModel(TinyFamily family, WeightFormat format) {
  TinyModel model = ForFormat(family, format);
  model.num_layers = 2;
  model.vocab_size = 101;
  model.context_length = 256;
  model.tokenizer = false;
  model.num_experts = 4;
  return model;
}

class FormatTest
    : public ::testing::TestWithParam<std::tuple<TinyFamily, WeightFormat>> {};

TEST_P(FormatTest, EveryValueAndPair) {
  const auto [family, format] = GetParam();
  const TinyModel model = SmallModel(family, format);
  const TempDir folder;
  const std::string path = folder.File("model.gguf");
  WriteTinyGguf(model, path);
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

INSTANTIATE_TEST_SUITE_P(
    Formats, FormatTest,
    ::testing::Combine(::testing::Values(TinyFamily::kLlama,
                                         TinyFamily::kQwen3Moe),
                       ::testing::ValuesIn(GgufFormats())),
    [](const auto& info) {
      return std::string(TinyFamilyName(std::get<0>(info.param))) + "_" +
             kernels::TraitsOf(std::get<1>(info.param)).name;
    });

}  // namespace
}  // namespace millrace::testing
