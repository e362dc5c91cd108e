// Reference checkpoints open with the sizes that their configurations state, as
// Hugging Face folders and as GGUF files alike; runs where the environment
// variable MILLRACE_REFERENCE_DIR names a folder that holds golden/.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/quantised_tensors.h"
#include "model/checkpoint/safetensors_folder.h"
#include "model/checkpoint/spec_from_config.h"
#include "model/spec/model_costs.h"

namespace millrace::model {
namespace {

using ::testing::ElementsAre;

const AttentionOp& AttentionAt(const ModelSpec& spec, size_t layer) {
  return std::get<AttentionOp>(spec.layers[layer].operations[0]);
}

class ReferenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("MILLRACE_REFERENCE_DIR");
    if (root == nullptr) {
      GTEST_SKIP() << "MILLRACE_REFERENCE_DIR is not set";
    }
    root_ = std::string(root) + "/golden/";
    if (!IsDirectory(root_)) {
      GTEST_SKIP() << root_ << " is not there";
    }
  }
  ModelSpec Open(const std::string& name) {
    auto checkpoint = Checkpoint::Open(root_ + name);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? (*checkpoint)->spec() : ModelSpec();
  }
  std::string root_;
};

TEST_F(ReferenceTest, EveryCaseOpens) {
  for (const char* name :
       {"llama-bias", "llama-dynamic", "llama-linear", "llama-llama3",
        "llama-yarn", "mistral-window", "qwen2-bias", "qwen2-window",
        "qwen3-moe", "qwen3-qknorm", "smollm3-nope"}) {
    SCOPED_TRACE(name);
    const ModelSpec spec = Open(name);
    EXPECT_EQ(spec.name, name);
    EXPECT_EQ(spec.digest.size(), 64u);
    EXPECT_THAT(spec.stop_tokens, ElementsAre(2));
    EXPECT_EQ(spec.bos_token, 1);
    const auto assumed = SpecFromConfig(root_ + name + "/config.json");
    ASSERT_TRUE(assumed.ok()) << assumed.status();
    EXPECT_EQ(assumed->layers.size(), spec.layers.size());
    EXPECT_EQ(CostsOf(*assumed).parameters, CostsOf(spec).parameters);
    EXPECT_EQ(CostsOf(*assumed).tile_bytes, CostsOf(spec).tile_bytes);
    const std::string gguf = std::string(name) + "/model.gguf";
    if (FileExists(root_ + gguf)) {
      const ModelSpec twin = Open(gguf);
      EXPECT_EQ(twin.family, spec.family);
      EXPECT_EQ(CostsOf(twin).parameters, CostsOf(spec).parameters);
      EXPECT_EQ(twin.context_length, spec.context_length);
      EXPECT_EQ(twin.head_is_embedding, spec.head_is_embedding);
      EXPECT_THAT(twin.stop_tokens, ElementsAre(2));
    }
  }
}

TEST_F(ReferenceTest, OtherFamiliesAreRefusedByName) {
  for (const char* name : {"deepseek-v3", "gemma3-text", "gpt-oss-bf16",
                           "kimi-linear", "lfm2", "qwen3-next"}) {
    const auto checkpoint = Checkpoint::Open(root_ + name);
    ASSERT_FALSE(checkpoint.ok()) << name;
    EXPECT_THAT(std::string(checkpoint.status().message()),
                ::testing::HasSubstr("is not supported"));
  }
}

// Their families are not supported yet, their packed tensors are.
TEST_F(ReferenceTest, PackedTensorsOfOtherFamiliesAreTaken) {
  for (const char* name :
       {"deepseek-v3-fp8", "kimi-k3-mxfp4", "gpt-oss-mxfp4"}) {
    SCOPED_TRACE(name);
    const auto text = ReadFile(root_ + name + "/config.json", 1 << 20);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto json = ParseJson(*text, name);
    ASSERT_TRUE(json.ok()) << json.status();
    auto config = JsonObject::From(*json, name);
    if (!config->Has("quantization_config")) {
      config = config->Object("text_config");
    }
    ASSERT_TRUE(config.ok()) << config.status();
    const auto quantisation = HfQuantisation::Read(*config);
    ASSERT_TRUE(quantisation.ok()) << quantisation.status();
    const auto files = OpenSafetensorsFolder(root_ + name);
    ASSERT_TRUE(files.ok()) << files.status();
    const QuantisedTensors tensors(files->tensors, *quantisation);
    int taken = 0;
    for (const StoredTensor& stored : files->tensors.all()) {
      absl::string_view module = stored.name;
      absl::StatusOr<Matrix> matrix = absl::NotFoundError("");
      if (stored.type == "F8_E4M3") {
        matrix =
            tensors.TakeMatrix(stored.name, stored.shape[0], stored.shape[1]);
      } else if (absl::ConsumeSuffix(&module, "_packed")) {
        matrix = tensors.TakeMatrix(std::string(module), stored.shape[0],
                                    stored.shape[1] * 2);
      } else if (absl::ConsumeSuffix(&module, "_blocks")) {
        const int64_t last = stored.shape[0] - 1;
        matrix =
            tensors.TakeSlice({std::string(module), last + 1, stored.shape[1],
                               stored.shape[2] * 32, last, 0, stored.shape[1]});
      } else {
        continue;
      }
      ASSERT_TRUE(matrix.ok()) << matrix.status();
      EXPECT_TRUE(matrix->parts.has_value()) << stored.name;
      ++taken;
    }
    EXPECT_GT(taken, 3);
  }
}

TEST_F(ReferenceTest, Switches) {
  const ModelSpec bias = Open("llama-bias");
  EXPECT_TRUE(AttentionAt(bias, 0).o.bias.has_value());
  EXPECT_TRUE(
      std::get<DenseFfnOp>(bias.layers[0].operations[1]).down.bias.has_value());
  const ModelSpec dynamic = Open("llama-dynamic");
  EXPECT_EQ(dynamic.context_length, 60);
  EXPECT_EQ(AttentionAt(dynamic, 0).rope->original_context, 40);
  const ModelSpec yarn = Open("llama-yarn");
  EXPECT_EQ(AttentionAt(yarn, 0).rope->attention_factor,
            0.1 * std::log(4.0) + 1);
  EXPECT_EQ(yarn.context_length, 128);
  const ModelSpec mistral = Open("mistral-window");
  EXPECT_EQ(AttentionAt(mistral, 3).window, 12);
  EXPECT_EQ(AttentionAt(Open("qwen2-bias"), 3).window, 0);
  const ModelSpec window = Open("qwen2-window");
  EXPECT_EQ(AttentionAt(window, 1).window, 0);
  EXPECT_EQ(AttentionAt(window, 2).window, 9);
  EXPECT_TRUE(AttentionAt(window, 2).q.bias.has_value());
  EXPECT_FALSE(AttentionAt(window, 2).o.bias.has_value());
  const ModelSpec nope = Open("smollm3-nope");
  EXPECT_TRUE(AttentionAt(nope, 1).rope.has_value());
  EXPECT_FALSE(AttentionAt(nope, 2).rope.has_value());
  EXPECT_FALSE(AttentionAt(nope, 4).rope.has_value());
  const ModelSpec llama3 = Open("llama-llama3/model.gguf");
  EXPECT_TRUE(AttentionAt(llama3, 0).rope->interleaved);
  EXPECT_EQ(AttentionAt(llama3, 0).rope->divisors->size, 8);
  EXPECT_FALSE(AttentionAt(Open("qwen3-moe/model.gguf"), 0).rope->interleaved);
}

}  // namespace
}  // namespace millrace::model
