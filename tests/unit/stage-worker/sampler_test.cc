#include "stage-worker/sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/spec/stage_memory.h"
#include "tests/unit/stage-worker/sampler_reference.h"

namespace millrace::worker {
namespace {

using transport::Result;
using transport::RowFailure;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Result SampleCase(Sampler& sampler, const ReferenceCase& c) {
  const auto vocab = static_cast<int64_t>(c.logits.size());
  const auto num_tokens = static_cast<int64_t>(c.tokens.size());
  std::vector<int32_t> memory(
      model::TokenHistorySizeOf(vocab, num_tokens).numbers());
  TokenHistory history(memory.data(), vocab, {c.prompt_tokens, num_tokens});
  for (size_t i = 0; i < c.tokens.size(); ++i) {
    history.Observe(static_cast<int64_t>(i), c.tokens[i]);
  }
  Result result;
  sampler.Sample({.logits = c.logits,
                  .position = c.position,
                  .options = &c.options,
                  .history = &history,
                  .wants_logprob = true,
                  .num_top = c.num_top},
                 result);
  return result;
}

void ExpectEqual(const Result& got, const Result& want,
                 const std::string& where) {
  ASSERT_EQ(got.failure, want.failure) << where;
  ASSERT_EQ(got.token, want.token) << where;
  ASSERT_EQ(std::bit_cast<uint32_t>(got.logprob),
            std::bit_cast<uint32_t>(want.logprob))
      << where;
  ASSERT_EQ(got.top.size(), want.top.size()) << where;
  for (size_t i = 0; i < got.top.size(); ++i) {
    ASSERT_EQ(got.top[i].token, want.top[i].token) << where << " " << i;
    ASSERT_EQ(got.top[i].logprob, want.top[i].logprob) << where << " " << i;
  }
}

// Draws cases that mix every option, ties, masked logits and the odd NaN.
class CaseMaker {
 public:
  explicit CaseMaker(unsigned seed) : random_(seed) {}

  ReferenceCase Make(int64_t vocab) {
    ReferenceCase c;
    c.logits.resize(vocab);
    const float spread = Pick<float>({0.1f, 1.0f, 3.0f, 10.0f});
    const bool ties = Chance(3);
    const bool masks = Chance(4);
    std::normal_distribution<float> normal(0.0f, spread);
    for (float& logit : c.logits) {
      const float x = normal(random_);
      logit = ties ? std::rint(x) : x;
      if (masks && Chance(2)) {
        logit = -kInfinity;
      }
    }
    if (Chance(50)) {
      c.logits[Below(vocab)] = Pick<float>({kNan, kInfinity, -kInfinity});
    }
    c.position = Below(100000);
    c.num_top = static_cast<int32_t>(Below(21));
    FillOptions(vocab, c.options);
    FillTokens(vocab, c);
    return c;
  }

  int64_t Below(int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random_);
  }

 private:
  bool Chance(int64_t one_in) { return Below(one_in) == 0; }

  template <typename T>
  T Pick(const std::vector<T>& values) {
    return values[Below(static_cast<int64_t>(values.size()))];
  }

  void FillOptions(int64_t vocab, transport::SamplingOptions& options) {
    options.temperature = Pick<float>({0, 0.3f, 0.7f, 1, 1, 2, 1e-38f});
    options.top_k = Chance(2) ? 0 : static_cast<int32_t>(1 + Below(2 * vocab));
    options.top_k = Chance(3) ? Pick<int32_t>({1, 2, 40}) : options.top_k;
    options.top_p =
        Pick<float>({1, 1, 0.0f, 1e-6f, 0.5f, 0.9f, 0.99f, 0.9999f});
    options.min_p = Pick<float>({0, 0, 0.05f, 0.5f, 1});
    options.seed = random_();
    options.choice = static_cast<uint32_t>(Below(4));
    options.repetition_penalty = Pick<float>({1, 1, 1.3f, 0.8f});
    options.presence_penalty = Pick<float>({0, 0, 0.7f, -2});
    options.frequency_penalty = Pick<float>({0, 0, 0.4f, -1});
    if (Chance(3)) {
      for (int64_t i = Below(5); i >= 0; --i) {
        options.logit_bias.push_back({static_cast<int32_t>(Below(vocab)),
                                      Pick<float>({-100, -1, 2, 100})});
      }
    }
  }

  void FillTokens(int64_t vocab, ReferenceCase& c) {
    const int64_t num_tokens = 1 + Below(80);
    c.prompt_tokens = 1 + Below(num_tokens);
    for (int64_t i = 0; i < num_tokens; ++i) {
      const int64_t range = Chance(2) ? std::min<int64_t>(vocab, 10) : vocab;
      c.tokens.push_back(static_cast<int32_t>(Below(range)));
    }
  }

  std::mt19937_64 random_;
};

// The sampler equals its definition in every field over thousands of random
// rows and options, on every instruction set of this processor.
TEST(Sampler, EqualsReference) {
  for (int i = 0; i < kernels::kNumIsas; ++i) {
    const auto isa = static_cast<kernels::Isa>(i);
    if (!kernels::HostSupports(isa)) {
      continue;
    }
    const kernels::KernelTable table = kernels::BuildKernelTable(isa);
    for (const int64_t vocab : {1, 2, 17, 300, 1024, 1025, 5000}) {
      CaseMaker maker(1000 + static_cast<unsigned>(vocab));
      Sampler sampler(table.sampling, vocab);
      const int cases = vocab < 1000 ? 700 : 150;
      for (int j = 0; j < cases; ++j) {
        const ReferenceCase c = maker.Make(vocab);
        const std::string where = std::string(kernels::IsaName(isa)) +
                                  " vocab " + std::to_string(vocab) + " case " +
                                  std::to_string(j);
        ExpectEqual(SampleCase(sampler, c), ReferenceSample(c), where);
        if (HasFatalFailure()) {
          return;
        }
        const auto target = static_cast<int32_t>(maker.Below(vocab));
        Result score;
        sampler.Score(c.logits, target, c.num_top, score);
        ExpectEqual(score, ReferenceScore(c.logits, target, c.num_top),
                    "score " + where);
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

Sampler MakeSampler(int64_t vocab) {
  return Sampler(kernels::BuildKernelTable(kernels::Isa::kScalar).sampling,
                 vocab);
}

// Draws over many positions follow the softmax; the log-probability is that of
// the softmax without temperature.
TEST(Sampler, FollowsSoftmax) {
  Sampler sampler = MakeSampler(4);
  ReferenceCase c;
  c.logits = {0.0f, 1.0f, 2.0f, -1.0f};
  c.options.temperature = 2;
  c.options.seed = 99;
  std::vector<int> counts(4);
  for (c.position = 0; c.position < 40000; ++c.position) {
    const Result result = SampleCase(sampler, c);
    ++counts[result.token];
    const double all = std::exp(0) + std::exp(1) + std::exp(2) + std::exp(-1);
    ASSERT_NEAR(result.logprob,
                std::log(std::exp(c.logits[result.token]) / all), 1e-6);
  }
  double all = 0;
  for (const float logit : c.logits) {
    all += std::exp(logit / 2.0);
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(counts[i] / 40000.0, std::exp(c.logits[i] / 2.0) / all, 0.01);
  }
}

// A NaN anywhere, an infinite maximum and a row of -infinity fail; a masked
// token beside finite ones does not.
TEST(Sampler, NotFinite) {
  Sampler sampler = MakeSampler(3);
  ReferenceCase c;
  for (const std::vector<float>& logits :
       {std::vector<float>{1, kNan, 2}, std::vector<float>{1, kInfinity, 2},
        std::vector<float>{-kInfinity, -kInfinity, -kInfinity}}) {
    c.logits = logits;
    EXPECT_EQ(SampleCase(sampler, c).failure, RowFailure::kLogitsNotFinite);
    EXPECT_EQ(SampleCase(sampler, c).token, -1);
    Result score;
    sampler.Score(logits, 0, 0, score);
    EXPECT_EQ(score.failure, RowFailure::kLogitsNotFinite);
  }
  c.logits = {1, -kInfinity, 2};
  c.num_top = 3;
  const Result result = SampleCase(sampler, c);
  EXPECT_EQ(result.failure, RowFailure::kNone);
  EXPECT_EQ(result.token, 2);
  EXPECT_EQ(result.top.size(), 2u);
}

// Toward T = 0 the largest logit wins, also where z / T is not finite any more:
// overflown to either side.
TEST(Sampler, TinyTemperatureIsGreedy) {
  Sampler sampler = MakeSampler(3);
  for (const std::vector<float>& logits :
       {std::vector<float>{1, 30, -5}, std::vector<float>{-30, -2, -9},
        std::vector<float>{-1, 0, -2}}) {
    for (const float temperature :
         {1e-5f, 1e-30f, 1e-38f, std::numeric_limits<float>::denorm_min()}) {
      ReferenceCase c;
      c.logits = logits;
      c.options.temperature = temperature;
      c.options.top_p = 0.9f;
      c.options.repetition_penalty = 1.1f;
      c.tokens = {2};
      const Result result = SampleCase(sampler, c);
      EXPECT_EQ(result.failure, RowFailure::kNone) << temperature;
      EXPECT_EQ(result.token, 1) << temperature;
    }
  }
}

// Ties of the largest logit go to the lower id.
TEST(Sampler, GreedyTies) {
  Sampler sampler = MakeSampler(5);
  ReferenceCase c;
  c.logits = {-0.0f, -3, 0.0f, -1, 0.0f};
  EXPECT_EQ(SampleCase(sampler, c).token, 0);
}

// Counts are those of the answer alone; a new sequence starts empty, whatever
// its memory holds, and tokens beyond the room are dropped.
TEST(TokenHistory, CountsAnswerTokens) {
  std::vector<int32_t> memory(model::TokenHistorySizeOf(1000, 4).numbers());
  TokenHistory history(memory.data(), 1000, {2, 4});
  for (int64_t i = 0; i < 6; ++i) {
    history.Observe(i, i % 2 == 0 ? 7 : 900);
  }
  ASSERT_EQ(history.num_entries(), 2);
  EXPECT_EQ(history.entry(0).token, 7);
  EXPECT_EQ(history.entry(0).answer_count, 2);
  EXPECT_EQ(history.entry(1).answer_count, 2);
  history = TokenHistory(memory.data(), 1000, {100, 4});
  EXPECT_EQ(history.num_entries(), 0);
  for (int32_t token = 0; token < 9; ++token) {
    history.Observe(token, token);
  }
  EXPECT_EQ(history.num_entries(), 4);
  EXPECT_EQ(history.entry(3).answer_count, 0);
}

// A history keeps to the memory that plans count, however full it gets.
TEST(TokenHistory, TakesWhatPlansCount) {
  for (const auto& [vocab, tokens_max] :
       std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1000, 100}, {100, 1000}, {4096, 4096}}) {
    const auto size = static_cast<size_t>(
        model::TokenHistoriesBytes(vocab, tokens_max, 1) / 4);
    std::vector<int32_t> memory(size + 1, 77);
    TokenHistory history(memory.data(), vocab, {1, tokens_max});
    for (int64_t i = 0; i < tokens_max; ++i) {
      history.Observe(i, static_cast<int32_t>(i % vocab));
    }
    EXPECT_EQ(history.num_entries(), std::min(vocab, tokens_max));
    EXPECT_EQ(memory.back(), 77);
  }
}

}  // namespace
}  // namespace millrace::worker
