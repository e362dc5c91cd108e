// A key too large for the stored type ends its own request, with the error that
// says what to do; requests in the same micro-batches keep every bit. Provoked
// with a token whose keys reach some 800,000, which half precision cannot hold
// and bf16 can.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kLargeToken = 7;
constexpr int64_t kColumn = 5;
constexpr int64_t kNumNeighbors = 4;
constexpr int64_t kTokens = 60;
constexpr int64_t kContext = 128;
constexpr int64_t kSequences = kNumNeighbors + 1;

// Sets an element of a row-major f32 matrix.
void Set(GgufWriterTensor& tensor, int64_t cols, int64_t row, int64_t col,
         float value) {
  std::memcpy(tensor.data.data() + (row * cols + col) * 4, &value, 4);
}

// The embedding of kLargeToken alone lies along kColumn, from which the first
// layer makes its keys 100,000 times as large.
GgufWriter LargeKeys() {
  TinyModel model;
  model.format = kernels::WeightFormat::kF32;
  model.num_layers = 4;
  GgufWriter writer = MakeTinyGguf(model);
  GgufWriterTensor& embedding = writer.Tensor("token_embd.weight");
  for (int64_t token = 0; token < model.vocab_size; ++token) {
    Set(embedding, model.hidden_size, token, kColumn, 0.0f);
  }
  for (int64_t col = 0; col < model.hidden_size; ++col) {
    Set(embedding, model.hidden_size, kLargeToken, col,
        col == kColumn ? 1.0f : 0.0f);
  }
  GgufWriterTensor& keys = writer.Tensor("blk.0.attn_k.weight");
  for (int64_t row = 0; row < model.num_kv_heads * model.head_dim; ++row) {
    Set(keys, model.hidden_size, row, kColumn, 1e5f);
  }
  return writer;
}

// Never generates the large token, so that only a prompt brings it.
coordinator::GenerateRequest RequestOf(int64_t index, int64_t prompt_tokens,
                                       int64_t tokens_max) {
  coordinator::GenerateRequest request;
  for (int64_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(
        static_cast<int32_t>(20 + (i * 13 + index * 29) % 200));
  }
  request.tokens_max = tokens_max;
  request.want_logits_crc = true;
  request.sampling.logit_bias = {{kLargeToken, -100.0f}};
  return request;
}

coordinator::GenerateRequest LargeRequest() {
  coordinator::GenerateRequest request = RequestOf(9, 24, 4);
  request.prompt[21] = kLargeToken;
  return request;
}

class KvOverflowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteTestFile(folder_.File("large.gguf"), LargeKeys().Build());
    checkpoint_ = model::Checkpoint::Open(folder_.File("large.gguf")).value();
  }

  std::unique_ptr<cli::LocalPipeline> Start(kernels::KvType kv_type) {
    cli::ComputeOptions compute;
    compute.stages = 2;
    compute.num_threads = 2;
    compute.chunk = 4;
    compute.isa = kernels::BestIsa();
    compute.kv_type = kv_type;
    compute.context = kContext;
    return StartPipeline(*checkpoint_, compute, kSequences).value();
  }

  TempDir folder_;
  std::unique_ptr<model::Checkpoint> checkpoint_;
};

TEST_F(KvOverflowTest, EndsItsRequestAlone) {
  const auto pipeline = Start(kernels::KvType::kF16);
  std::vector<Outcome> alone;
  for (int64_t i = 0; i < kNumNeighbors; ++i) {
    alone.push_back(RunToEnd(pipeline->engine(), RequestOf(i, 3 + i, kTokens)));
    ASSERT_TRUE(alone.back().status.ok()) << alone.back().status;
    ASSERT_EQ(alone.back().tokens.size(), static_cast<size_t>(kTokens));
  }
  // The neighbors decode while the large request is read, four rows at a time.
  std::vector<std::shared_ptr<OutcomeObserver>> neighbors;
  for (int64_t i = 0; i < kNumNeighbors; ++i) {
    neighbors.push_back(std::make_shared<OutcomeObserver>());
    ASSERT_TRUE(pipeline->engine()
                    .Submit(RequestOf(i, 3 + i, kTokens), neighbors.back())
                    .ok());
  }
  const Outcome large = RunToEnd(pipeline->engine(), LargeRequest());
  EXPECT_EQ(large.status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(large.status.message()), HasSubstr("position 21"));
  EXPECT_THAT(HintOf(large.status), HasSubstr("--kv bf16"));
  EXPECT_TRUE(large.tokens.empty());
  for (int64_t i = 0; i < kNumNeighbors; ++i) {
    EXPECT_EQ(neighbors[static_cast<size_t>(i)]->Wait(),
              alone[static_cast<size_t>(i)])
        << i;
  }
  // Its blocks, which hold infinities, serve the next request as new ones.
  EXPECT_EQ(RunToEnd(pipeline->engine(), RequestOf(0, 3, kTokens)), alone[0]);
  EXPECT_EQ(pipeline->engine().Snapshot().requests_failed, 1);
}

// What the hint says helps; so does a type whose scales follow the keys.
TEST_F(KvOverflowTest, WiderTypesServeIt) {
  for (const kernels::KvType kv_type :
       {kernels::KvType::kBf16, kernels::KvType::kF32,
        kernels::KvType::kInt8}) {
    const auto pipeline = Start(kv_type);
    const Outcome large = RunToEnd(pipeline->engine(), LargeRequest());
    EXPECT_TRUE(large.status.ok()) << large.status;
    EXPECT_EQ(large.tokens.size(), 4u);
  }
}

}  // namespace
}  // namespace millrace::testing
