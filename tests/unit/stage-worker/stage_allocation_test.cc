#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "stage-worker/runtime/stage.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::worker {
namespace {

using ::millrace::testing::TempDir;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;

constexpr int64_t kLayers = 4;
constexpr uint32_t kSlots = 3;
constexpr uint32_t kWarmUp = 8;
constexpr uint32_t kPositions = 140;  // three blocks of keys and values

// Two stages of one model, driven frame by frame without links.
class StageAllocationTest : public ::testing::TestWithParam<TinyFamily> {
 protected:
  void SetUp() override {
    TinyModel model;
    model.family = GetParam();
    model.num_layers = kLayers;
    model.tokenizer = false;
    ::millrace::testing::WriteTinyFolder(model, folder_.path());
    checkpoint_ = *model::Checkpoint::Open(folder_.path());
    kernels_ = kernels::BuildKernelTable(kernels::BestIsa());
    first_ = Make(0, 1);
    last_ = Make(2, kLayers - 1);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      Open(slot, 0);
      in_.rows.push_back({.slot = slot});
    }
  }

  // With the next step, which is its first; `position` is that of the others.
  void Open(uint32_t slot, uint32_t position) {
    transport::OpenSequence open;
    open.slot = slot;
    open.prompt_tokens = 1;
    open.tokens_max = kPositions;
    open.top_logprobs = slot == 0 ? 5 : transport::kTopLogprobsMax;
    if (slot == 1) {
      open.sampling.temperature = 1;
      open.sampling.top_p = 0.9f;
      open.sampling.repetition_penalty = 1.2f;
    }
    in_.ops.emplace_back(open);
    opened_at_[slot] = position;
  }

  std::unique_ptr<Stage> Make(int64_t first_layer, int64_t last_layer) {
    StageRunner::Options options;
    options.kernels = &kernels_;
    options.config.first_layer = first_layer;
    options.config.last_layer = last_layer;
    options.config.holds_embedding = first_layer == 0;
    options.config.holds_head = last_layer == kLayers - 1;
    options.config.context = kPositions;
    options.config.sequences = kSlots;
    options.config.slots = kSlots;
    options.config.rows_max = 8;
    options.config.prefill_chunk = 4;
    options.config.num_threads = 2;
    auto stage = Stage::Create(*checkpoint_, options);
    EXPECT_TRUE(stage.ok()) << stage.status();
    return *std::move(stage);
  }

  // One token of every sequence through both stages.
  void Step(uint32_t position) {
    for (transport::Row& row : in_.rows) {
      row.position = position - opened_at_[row.slot];
      row.token = static_cast<int32_t>(3 + (position * 7 + row.slot) % 50);
      row.flags = transport::kRowDecode | transport::kRowWantsToken |
                  transport::kRowWantsLogprob | transport::kRowWantsCrc;
    }
    ASSERT_TRUE(first_->Process(in_, between_).ok());
    ASSERT_TRUE(last_->Process(between_, out_).ok());
    ASSERT_EQ(out_.results.size(), kSlots);
    in_.ops.clear();
  }

  TempDir folder_;
  std::unique_ptr<model::Checkpoint> checkpoint_;
  kernels::KernelTable kernels_;
  std::unique_ptr<Stage> first_;
  std::unique_ptr<Stage> last_;
  uint32_t opened_at_[kSlots] = {};
  transport::Frame in_;
  transport::Frame between_;
  transport::Frame out_;
};

// After a few tokens no stage allocates, across blocks of keys and values,
// greedy and sampled, with top log-probabilities, dense and with experts,
// counted by a replaced operator new.
TEST_P(StageAllocationTest, DecodeDoesNotAllocateAfterWarmUp) {
  for (uint32_t position = 0; position < kWarmUp; ++position) {
    Step(position);
  }
  const int64_t before = ::millrace::testing::NumAllocations();
  for (uint32_t position = kWarmUp; position < kPositions; ++position) {
    Step(position);
  }
  EXPECT_EQ(::millrace::testing::NumAllocations(), before);
}

// Nor does a sequence that opens, with penalties, which look at all its tokens.
TEST_P(StageAllocationTest, OpensWithoutAllocating) {
  uint32_t position = 0;
  const auto steps = [&] {
    for (uint32_t i = 0; i < kWarmUp; ++i) {
      Step(position++);
    }
  };
  steps();
  const int64_t before = ::millrace::testing::NumAllocations();
  in_.ops.emplace_back(transport::CloseSequence{1});
  Open(1, position);
  steps();
  EXPECT_EQ(::millrace::testing::NumAllocations(), before);
}

INSTANTIATE_TEST_SUITE_P(Families, StageAllocationTest,
                         ::testing::Values(TinyFamily::kLlama,
                                           TinyFamily::kMistral,
                                           TinyFamily::kQwen3Moe),
                         [](const auto& info) {
                           return std::string(
                               ::millrace::testing::TinyFamilyName(info.param));
                         });

}  // namespace
}  // namespace millrace::worker
