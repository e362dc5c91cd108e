// Costs follow from the sizes of a model alone; provoked by comparing with sums
// written out by hand, and with published totals.
#include "model/spec/model_costs.h"

#include <string>

#include "gtest/gtest.h"
#include "kernels/quant/tile.h"
#include "model/checkpoint/spec_from_config.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::model {
namespace {

using ::millrace::testing::TempDir;
using ::millrace::testing::TinyConfigJson;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;

ModelSpec SpecOf(const TinyModel& model) {
  TempDir dir;
  const auto spec =
      SpecFromConfig(dir.Write("config.json", TinyConfigJson(model)));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : ModelSpec();
}

TEST(ModelCosts, DenseLayer) {
  const ModelSpec spec = SpecOf(TinyModel());
  const PartCosts layer = CostsOf(spec.layers[0]);
  const int64_t matrices = 64 * (64 + 2 * 32 + 64) + 3 * 64 * 96;
  EXPECT_EQ(layer.parameters, matrices + 2 * 64);
  EXPECT_EQ(layer.stored_bytes, 2 * (matrices + 2 * 64));
  // All sizes are multiples of 16 rows: tiles hold no padding.
  EXPECT_EQ(layer.tile_bytes, 2 * matrices);
  EXPECT_EQ(layer.vector_bytes, 4 * 2 * 64);
  EXPECT_EQ(layer.read_bytes_per_token, layer.weights_bytes());
  EXPECT_EQ(layer.operations_per_token, 2.0 * matrices);
  EXPECT_EQ(KvValuesPerToken(spec.layers[0]), 2 * 2 * 16);
  EXPECT_EQ(KvBytesPerToken(spec.layers[0], kKv16Bit), 128);
  EXPECT_EQ(AttentionOperations(spec.layers[0], 100), 4.0 * 4 * 16 * 100);
}

TEST(ModelCosts, ExpertsCountAsFarAsTheyAreUsed) {
  TinyModel model;
  model.family = TinyFamily::kQwen3Moe;
  const ModelSpec spec = SpecOf(model);
  const PartCosts layer = CostsOf(spec.layers[0]);
  const int64_t expert = 3 * 64 * 64;
  const int64_t rest = 64 * (64 + 2 * 32 + 64) + 8 * 64;
  EXPECT_EQ(layer.parameters, rest + 8 * expert + 2 * 64 + 2 * 16);
  EXPECT_EQ(layer.operations_per_token, 2.0 * (rest + 2 * expert));
  // A router of 8 rows fills half a tile.
  EXPECT_EQ(layer.tile_bytes, 2 * (rest + 8 * 64 + 8 * expert));
  EXPECT_EQ(layer.read_bytes_per_token,
            2 * (rest + 8 * 64 + 2 * expert) + layer.vector_bytes);
}

TEST(ModelCosts, TiedHeadCountsOnce) {
  TinyModel model;
  const ModelSpec untied = SpecOf(model);
  model.tied = true;
  const ModelSpec tied = SpecOf(model);
  const int64_t matrix = 320 * 64;
  EXPECT_EQ(CostsOf(untied).parameters - CostsOf(tied).parameters, matrix);
  EXPECT_EQ(HeadCosts(tied).parameters, 64);
  EXPECT_EQ(HeadCosts(tied).tile_bytes, 2 * matrix);
  EXPECT_EQ(CostsOf(untied).tile_bytes - CostsOf(tied).tile_bytes, 2 * matrix);
  EXPECT_EQ(EmbeddingCosts(tied).read_bytes_per_token, 0);
}

TEST(ModelCosts, WindowsLimitAttention) {
  TinyModel model;
  model.family = TinyFamily::kMistral;
  const ModelSpec spec = SpecOf(model);
  EXPECT_EQ(WindowOf(spec.layers[0]), 12);
  EXPECT_EQ(AttentionOperations(spec.layers[0], 100),
            AttentionOperations(spec.layers[0], 12));
  EXPECT_STREQ(KindOf(spec.layers[0]), "window attention, dense");
}

TEST(ModelCosts, PublishedTotals) {
  TempDir dir;
  const auto parameters = [&](const std::string& config) {
    const auto spec = SpecFromConfig(dir.Write("config.json", config));
    EXPECT_TRUE(spec.ok()) << spec.status();
    return spec.ok() ? CostsOf(*spec).parameters : 0;
  };
  // Qwen3-30B-A3B: 30.53 billion.
  EXPECT_EQ(parameters(R"({"model_type": "qwen3_moe", "hidden_size": 2048,
      "num_hidden_layers": 48, "num_attention_heads": 32,
      "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
      "num_experts_per_tok": 8, "moe_intermediate_size": 768,
      "intermediate_size": 6144, "vocab_size": 151936,
      "max_position_embeddings": 40960, "tie_word_embeddings": false})") /
                10'000'000,
            3053);
  // SmolLM2-135M: 134.5 million.
  EXPECT_EQ(parameters(R"({"model_type": "llama", "hidden_size": 576,
      "num_hidden_layers": 30, "num_attention_heads": 9,
      "num_key_value_heads": 3, "intermediate_size": 1536,
      "vocab_size": 49152, "max_position_embeddings": 8192,
      "tie_word_embeddings": true})"),
            134515008);
}

}  // namespace
}  // namespace millrace::model
