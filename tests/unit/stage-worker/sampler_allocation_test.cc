#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/spec/stage_memory.h"
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
  const TokenHistory::Sequence sequence = {.prompt_tokens = 2,
                                           .tokens_max = 64};
  std::vector<int32_t> memory(model::TokenHistorySizeOf(vocab, 64).numbers());
  TokenHistory history(memory.data(), vocab, sequence);
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
    history = TokenHistory(memory.data(), vocab, sequence);
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

// A sampler takes the bytes that plans count, and all of them at once.
TEST(Sampler, TakesWhatPlansCount) {
  const kernels::SamplingKernels kernels =
      kernels::BuildKernelTable(kernels::Isa::kScalar).sampling;
  for (const int64_t vocab : {1, 1023, 1024, 1025, 49152, 262144}) {
    const int64_t before = ::millrace::testing::AllocatedBytes();
    const Sampler sampler(kernels, vocab);
    EXPECT_EQ(::millrace::testing::AllocatedBytes() - before,
              model::SamplerBytes(vocab));
  }
}

}  // namespace
}  // namespace millrace::worker
