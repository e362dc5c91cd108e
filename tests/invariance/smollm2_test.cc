// The bits of every answer stay the same for SmolLM2-135M-Instruct: every value
// of every dimension against one base and every pair of values, 30 stages among
// them. Runs where the environment variable MILLRACE_SMOLLM2 names the file.
#include <cstdlib>
#include <memory>

#include "gtest/gtest.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/invariance/invariance_check.h"

namespace millrace::testing {
namespace {

class SmolLm2InvarianceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("MILLRACE_SMOLLM2");
    if (path == nullptr) {
      GTEST_SKIP() << "MILLRACE_SMOLLM2 does not name the model's file";
    }
    auto checkpoint = model::Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_ = *std::move(checkpoint);
    dimensions_ =
        AllDimensions(static_cast<int64_t>(checkpoint_->spec().layers.size()));
  }

  void Run(int64_t prompt_tokens, int64_t tokens_max) {
    const Workload workload =
        MakeWorkload({.vocab_size = checkpoint_->spec().vocab_size,
                      .prompt_tokens = prompt_tokens,
                      .tokens_max = tokens_max,
                      .other_prompt_max = 2,
                      .other_tokens_max = 1});
    InvarianceCheck check(*checkpoint_, workload);
    check.RunDefaultKv(EveryValueAndPair(dimensions_));
  }

  std::unique_ptr<model::Checkpoint> checkpoint_;
  Dimensions dimensions_;
};

// Short, since the scalar definition takes part.
TEST_F(SmolLm2InvarianceTest, ShortPrompt) { Run(8, 2); }

// Reaches the second block of keys and values.
TEST_F(SmolLm2InvarianceTest, LongPrompt) {
  if (dimensions_.isas.size() == 1) {
    GTEST_SKIP() << "the scalar definition alone would take minutes";
  }
  dimensions_.isas.pop_back();
  Run(70, 3);
}

}  // namespace
}  // namespace millrace::testing
