#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "stage-worker/sampling/sampler.h"
#include "tests/support/counted_allocations.h"

namespace millrace::worker {
namespace {

// After one call neither drawing nor scoring allocates, whichever filters are
// on, counted by a replaced operator new.
TEST(Sampler, DoesNotAllocateAfterWarmUp) {
  const int64_t vocab = 4096;
  Sampler sampler(kernels::BuildKernelTable(kernels::Isa::kScalar).sampling,
                  vocab);
  TokenHistory history(vocab, 64);
  std::vector<float> logits(vocab);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * 7919 % 4096) * 0.002f;
  }
  std::vector<transport::SamplingOptions> all(4);
  all[1].temperature = 1;
  all[1].top_p = 0.9f;
  all[2].temperature = 1;
  all[2].top_k = 2000;
  all[2].min_p = 0.1f;
  all[3].temperature = 1;
  all[3].repetition_penalty = 1.1f;
  transport::Result result;
  const auto pass = [&](int64_t position) {
    history.Open(2);
    for (int32_t i = 0; i < 50; ++i) {
      history.Observe(i, i * 3);
    }
    for (const transport::SamplingOptions& options : all) {
      sampler.Sample({.logits = logits,
                      .position = position,
                      .options = &options,
                      .history = &history,
                      .wants_logprob = true,
                      .num_top = 20},
                     result);
      sampler.Score(logits, 5, 20, result);
    }
  };
  pass(0);
  const int64_t before = ::millrace::testing::NumAllocations();
  pass(1);
  EXPECT_EQ(::millrace::testing::NumAllocations(), before);
}

}  // namespace
}  // namespace millrace::worker
