// Stages from a real, tiny checkpoint: the coordinator's wish is checked
// against the files, the digest, the layers and the budget before anything is
// loaded. Failures are provoked by changing one of them.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "stage-worker/server/resident_bytes.h"
#include "stage-worker/server/stage_factory.h"

namespace millrace::worker {
namespace {

using ::testing::HasSubstr;

const std::string kModels = std::string(MILLRACE_TEST_DATA_DIR) + "/golden";

control::Load GoodLoad() {
  const auto checkpoint =
      model::Checkpoint::Open(kModels + "/llama-llama3").value();
  const auto& spec = checkpoint->spec();
  control::Load load;
  load.load_key = "key";
  load.model = "/where/the/coordinator/has/it/llama-llama3/";
  load.model_digest = spec.digest;
  load.stage.first_layer = 1;
  load.stage.last_layer = static_cast<int64_t>(spec.layers.size()) - 1;
  load.stage.holds_head = true;
  load.stage.context = 128;
  load.stage.rows_max = 16;
  load.stage.prefill_chunk = 8;
  load.stage.num_threads = 1;
  return load;
}

class StageFactoryTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<StageFactory> Factory(
      int64_t memory_bytes = 0, const std::string& models_dir = kModels) const {
    return MakeCheckpointStageFactory({.models_dir = models_dir,
                                       .memory_bytes = memory_bytes,
                                       .num_threads = 1,
                                       .kernels = &kernels_});
  }
  absl::StatusOr<std::unique_ptr<StageRunner>> Create(
      const control::Load& load, int64_t memory_bytes = 0,
      const std::string& models_dir = kModels) {
    return Factory(memory_bytes, models_dir)
        ->Create(
            load, [](const LoadProgress&) {}, [] { return false; });
  }

  const kernels::KernelTable kernels_ =
      kernels::BuildKernelTable(kernels::Isa::kScalar);
};

TEST_F(StageFactoryTest, LoadsByFileNameInItsOwnFolder) {
  const auto stage = Create(GoodLoad(), ResidentBytes() + (64 << 20));
  ASSERT_TRUE(stage.ok()) << stage.status();
  EXPECT_GT((*stage)->memory().weights_bytes, 0);
}

// What a stage allocates for keys and values is what the plan counts, whatever
// they are stored as: blocks of 64 positions of each layer.
TEST_F(StageFactoryTest, KvPoolsHaveTheSizeOfTheirType) {
  const auto checkpoint =
      model::Checkpoint::Open(kModels + "/llama-llama3").value();
  const auto& attention =
      std::get<model::AttentionOp>(checkpoint->spec().layers[1].operations[0]);
  const std::pair<control::KvType, kernels::KvType> types[] = {
      {control::KvType::kF32, kernels::KvType::kF32},
      {control::KvType::kF16, kernels::KvType::kF16},
      {control::KvType::kBf16, kernels::KvType::kBf16},
      {control::KvType::kInt8, kernels::KvType::kInt8}};
  for (const auto& [wanted, type] : types) {
    control::Load load = GoodLoad();
    load.stage.kv_type = wanted;
    const auto stage = Create(load);
    ASSERT_TRUE(stage.ok()) << stage.status();
    EXPECT_EQ((*stage)->memory().kv_bytes,
              load.stage.last_layer * (128 / 64) *
                  kernels::KvBlockBytes(type, attention.num_kv_heads,
                                        attention.head_dim));
  }
}

// Loading is over only when pools and scratch are resident: told to end when
// the last weight has been read, it still does.
TEST_F(StageFactoryTest, IsCancelledBehindTheLastRead) {
  std::atomic<bool> all_read{false};
  const auto stage = Factory()->Create(
      GoodLoad(),
      [&](const LoadProgress& progress) {
        if (progress.bytes_done == progress.bytes_total) {
          all_read = true;
        }
      },
      [&] { return all_read.load(); });
  EXPECT_TRUE(all_read);
  EXPECT_TRUE(absl::IsCancelled(stage.status())) << stage.status();
}

TEST_F(StageFactoryTest, RefusesWhatDoesNotMatch) {
  control::Load other = GoodLoad();
  other.model_digest[0] = other.model_digest[0] == '0' ? '1' : '0';
  EXPECT_EQ(KindOf(Create(other).status()), ErrorKind::kInput);
  EXPECT_THAT(std::string(Create(other).status().message()),
              HasSubstr("another model"));
  control::Load missing = GoodLoad();
  missing.model = "no-such-model.gguf";
  EXPECT_EQ(KindOf(Create(missing).status()), ErrorKind::kInput);
  const std::function<void(control::Stage&)> changes[] = {
      [](control::Stage& stage) { ++stage.last_layer; },
      [](control::Stage& stage) { stage.holds_head = false; },
      [](control::Stage& stage) { stage.holds_embedding = true; },
  };
  for (const auto& change : changes) {
    control::Load load = GoodLoad();
    change(load.stage);
    EXPECT_TRUE(absl::IsInvalidArgument(Create(load).status()));
  }
}

TEST_F(StageFactoryTest, RefusesAPlanBeyondItsBudget) {
  const absl::Status refused = Create(GoodLoad(), 1 << 20).status();
  EXPECT_EQ(KindOf(refused), ErrorKind::kAnswerNo);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the budget is"));
  EXPECT_THAT(HintOf(refused), HasSubstr("--memory"));
}

TEST(LocalModelPath, TakesTheLastPartOnly) {
  EXPECT_EQ(LocalModelPath("", "/a/b.gguf").value(), "/a/b.gguf");
  EXPECT_EQ(LocalModelPath("/m", "/a/b.gguf").value(), "/m/b.gguf");
  EXPECT_EQ(LocalModelPath("/m/", "b/").value(), "/m/b");
  for (const char* model : {"", "/", "..", "/a/..", "a/."}) {
    EXPECT_FALSE(LocalModelPath("/m", model).ok()) << model;
  }
}

}  // namespace
}  // namespace millrace::worker
