// Tokens, scores and the CRC of all logits are the same bits in every
// combination of stages, threads, chunks, instruction sets, transports and
// company, for a model of each family; one sum in another order shows. Keys and
// values of every type in every pair of values.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/invariance/invariance_check.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::testing {
namespace {

using kernels::ComputeMode;
using kernels::KvType;

// So small that a run takes milliseconds; sizes that leave rests in vectors.
TinyModel SmallModel(TinyFamily family) {
  TinyModel model;
  model.family = family;
  model.num_layers = 5;
  model.hidden_size = 32;
  model.intermediate_size = 48;
  model.num_heads = 2;
  model.num_kv_heads = 1;
  model.head_dim = 16;
  model.vocab_size = 101;
  model.context_length = 256;
  model.window = 20;
  model.num_experts = 4;
  model.expert_intermediate_size = 32;
  model.tokenizer = false;
  return model;
}

class FamilyTest : public ::testing::TestWithParam<TinyFamily> {
 protected:
  void SetUp() override {
    const TinyModel model = SmallModel(GetParam());
    WriteTinyFolder(model, folder_.path());
    auto checkpoint = model::Checkpoint::Open(folder_.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_ = *std::move(checkpoint);
    // The prompt ends in the second block of keys and values.
    workload_ = MakeWorkload({.vocab_size = model.vocab_size,
                              .prompt_tokens = 66,
                              .tokens_max = 4,
                              .other_prompt_max = 4,
                              .other_tokens_max = 4});
    check_ = std::make_unique<InvarianceCheck>(*checkpoint_, workload_);
    dimensions_ = AllDimensions(model.num_layers);
  }

  TempDir folder_;
  std::unique_ptr<model::Checkpoint> checkpoint_;
  Workload workload_;
  Dimensions dimensions_;
  std::unique_ptr<InvarianceCheck> check_;
};

TEST_P(FamilyTest, FullProduct) {
  check_->RunDefaultKv(FullProduct(dimensions_));
  const Observed* fast = check_->Find(ComputeMode::kFast, KvType::kF16);
  const Observed* exact = check_->Find(ComputeMode::kExact, KvType::kF32);
  ASSERT_TRUE(fast != nullptr && exact != nullptr);
  EXPECT_EQ(fast->greedy.score_crcs.size(), 66u);
  EXPECT_EQ(fast->greedy.tokens.size(), 4u);
  // What is compared can tell one run from another.
  EXPECT_NE(fast->greedy.score_crcs, exact->greedy.score_crcs);
  EXPECT_NE(fast->greedy.tokens, fast->sampled.tokens);
}

TEST_P(FamilyTest, EveryKvType) {
  for (const KvType kv_type :
       {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8}) {
    check_->Run(EveryValueAndPair(dimensions_), kv_type);
  }
  for (const ComputeMode mode : {ComputeMode::kFast, ComputeMode::kExact}) {
    const Observed* f32 = check_->Find(mode, KvType::kF32);
    const Observed* f16 = check_->Find(mode, KvType::kF16);
    const Observed* bf16 = check_->Find(mode, KvType::kBf16);
    const Observed* int8 = check_->Find(mode, KvType::kInt8);
    ASSERT_TRUE(f32 != nullptr && f16 != nullptr && bf16 != nullptr &&
                int8 != nullptr);
    EXPECT_NE(f32->greedy.score_crcs, f16->greedy.score_crcs);
    EXPECT_NE(f16->greedy.score_crcs, bf16->greedy.score_crcs);
    EXPECT_NE(bf16->greedy.score_crcs, int8->greedy.score_crcs);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTest,
                         ::testing::ValuesIn(kTinyFamilies),
                         [](const auto& info) {
                           return std::string(TinyFamilyName(info.param));
                         });

}  // namespace
}  // namespace millrace::testing
