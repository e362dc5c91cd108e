// Which modules are packed how follows from config.json, and what is not
// supported is refused by key and name; provoked by a config of every kind with
// one thing changed.
#include "model/checkpoint/hf_quantisation.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::model {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<HfQuantisation> Read(const std::string& fields) {
  const auto json = ParseJson(absl::StrCat("{", fields, "}"), "config.json");
  EXPECT_TRUE(json.ok()) << fields << json.status();
  return HfQuantisation::Read(*JsonObject::From(*json, "config.json"));
}

constexpr char kFp8[] =
    R"("quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
       "activation_scheme": "dynamic", "weight_block_size": [128, 128],
       "modules_to_not_convert": ["model.layers.0.mlp.gate"]})";
constexpr char kInt4[] =
    R"("quantization_config": {"quant_method": "compressed-tensors",
       "format": "pack-quantized", "config_groups": {
         "group_0": {"targets": ["Linear"], "input_activations": null,
           "weights": {"num_bits": 4, "type": "int", "group_size": 64,
             "strategy": "group", "symmetric": true, "dynamic": false}},
         "group_1": {"targets": ["re:.*\\.down_proj$"],
           "weights": {"num_bits": 4, "group_size": 32, "symmetric": false,
             "actorder": "static"}},
         "group_2": {"targets": ["model.layers.7.mlp.down_proj"],
           "weights": {"num_bits": 4, "strategy": "channel",
             "group_size": -1}}},
       "ignore": ["lm_head", "re:.*self_attn.*"]})";
constexpr char kFp8Groups[] =
    R"("compression_config": {"quant_method": "compressed-tensors",
       "format": "float-quantized", "config_groups": {
         "group_0": {"targets": ["Linear"],
           "input_activations": {"dynamic": true, "num_bits": 8},
           "weights": {"num_bits": 8, "type": "float", "strategy": "block",
             "block_structure": [128, 128]}}}})";
constexpr char kMxfp4Groups[] =
    R"("quantization_config": {"quant_method": "compressed-tensors",
       "format": "mxfp4-pack-quantized", "config_groups": {
         "group_0": {"targets": ["Linear"],
           "weights": {"num_bits": 4, "type": "float", "group_size": 32,
             "symmetric": true}}}})";
constexpr char kMlx[] =
    R"("quantization": {"group_size": 128, "bits": 4,
       "model.layers.0.mlp.gate": {"bits": 8, "group_size": 64},
       "lm_head": false},
       "quantization_config": {"group_size": 128, "bits": 4})";

std::optional<WeightScheme> SchemeOf(const std::string& fields,
                                     const std::string& module) {
  const auto read = Read(fields);
  EXPECT_TRUE(read.ok()) << read.status();
  const auto scheme = read->SchemeOf(module);
  EXPECT_TRUE(scheme.ok()) << scheme.status();
  return *scheme;
}

TEST(HfQuantisation, NoneIsNone) {
  const auto read = Read(R"("quantization_config": null)");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->method(), QuantisationMethod::kNone);
  EXPECT_FALSE(read->SchemeOf("model.layers.0.mlp.up_proj")->has_value());
}

TEST(HfQuantisation, Fp8TakesAllLinearsButThoseNamed) {
  EXPECT_EQ(SchemeOf(kFp8, "model.layers.0.mlp.up_proj")->packing,
            Packing::kFp8Blocks);
  for (const char* left :
       {"model.layers.0.mlp.gate", "lm_head", "model.embed_tokens"}) {
    EXPECT_FALSE(SchemeOf(kFp8, left).has_value()) << left;
  }
  EXPECT_EQ(SchemeOf(kFp8Groups, "model.layers.0.mlp.up_proj")->packing,
            Packing::kFp8Blocks);
}

TEST(HfQuantisation, TheClosestTargetDecides) {
  const auto linear = SchemeOf(kInt4, "model.layers.7.mlp.up_proj");
  EXPECT_EQ(linear->packing, Packing::kInt4);
  EXPECT_EQ(linear->group_size, 64);
  EXPECT_FALSE(linear->zero_points);
  const auto regex = SchemeOf(kInt4, "model.layers.6.mlp.down_proj");
  EXPECT_EQ(regex->group_size, 32);
  EXPECT_TRUE(regex->zero_points);
  EXPECT_EQ(SchemeOf(kInt4, "model.layers.7.mlp.down_proj")->group_size, 0);
  for (const char* left :
       {"lm_head", "model.embed_tokens", "model.layers.0.self_attn.q_proj"}) {
    EXPECT_FALSE(SchemeOf(kInt4, left).has_value()) << left;
  }
}

TEST(HfQuantisation, MlxModulesMayDiffer) {
  const auto most = SchemeOf(kMlx, "model.embed_tokens");
  EXPECT_EQ(most->packing, Packing::kMlxAffine);
  EXPECT_EQ(most->group_size, 128);
  EXPECT_EQ(most->bits, 4);
  const auto router = SchemeOf(kMlx, "model.layers.0.mlp.gate");
  EXPECT_EQ(router->group_size, 64);
  EXPECT_EQ(router->bits, 8);
  EXPECT_FALSE(SchemeOf(kMlx, "lm_head").has_value());
  EXPECT_EQ(SchemeOf(R"("quantization": {})", "lm_head")->group_size, 64);
}

struct Wrong {
  const char* config;
  const char* old_text;
  const char* new_text;
  const char* must_say;
};

TEST(HfQuantisation, Mxfp4OfCompressedTensors) {
  const auto scheme = SchemeOf(kMxfp4Groups, "model.layers.0.mlp.up_proj");
  ASSERT_TRUE(scheme.has_value());
  EXPECT_EQ(scheme->packing, Packing::kMxfp4);
}

TEST(HfQuantisation, RefusesByName) {
  for (const Wrong& wrong : std::vector<Wrong>{
           {kFp8, "\"fp8\"", "\"gptq\"", "'gptq'"},
           {kFp8, "\"quant_method\": \"fp8\", ", "", "'unknown'"},
           {kFp8, "e4m3", "e5m2", "'e5m2'"},
           {kFp8, "dynamic", "static", "static scales"},
           {kFp8, "[128, 128]", "[64, 128]", "weight_block_size"},
           {kFp8, "[128, 128]", "null", "weight_block_size"},
           {kFp8, "[\"model.layers.0.mlp.gate\"]", "7", "list of names"},
           {kInt4, "\"pack-quantized\"", "\"marlin-24\"", "'marlin-24'"},
           {kInt4, "\"pack-quantized\"", "\"int-quantized\"", "int-quantized"},
           {kInt4, "\"num_bits\": 4, \"type\"", "\"num_bits\": 8, \"type\"",
            "of 8 bits"},
           {kInt4, "\"type\": \"int\"", "\"type\": \"float\"", "'float'"},
           {kInt4, "\"static\"", "\"group\"", "actorder"},
           {kInt4, "\"group_size\": 64", "\"group_size\": 48", "48"},
           {kInt4, "\"group_size\": 64", "\"group_size\": 0", "group_size"},
           {kInt4, "\"group_size\": 64", "\"group_size\": 9000000000000000000",
            "group_size"},
           {kInt4, "\"group_size\": 64", "\"group_size\": \"x\"", "group_size"},
           {kInt4, "\"group_size\": 64,", "", "group_size: is missing"},
           {kInt4, "\"channel\"", "\"tensor\"", "'tensor'"},
           {kInt4, "re:.*self_attn.*", "re:(", "pattern 're:('"},
           {kInt4, "\"config_groups\"", "\"groups\"", "config_groups"},
           {kInt4, "\"ignore\"", "\"transform_config\": {\"a\": 1}, \"ignore\"",
            "transform_config"},
           {kInt4, "\"ignore\"",
            "\"sparsity_config\": {\"format\": \"sparse-24\"}, \"ignore\"",
            "sparsity_config"},
           {kFp8Groups, "\"block\"", "\"channel\"", "strategy"},
           {kFp8Groups, "\"dynamic\": true", "\"dynamic\": false", "static"},
           {kFp8Groups, "\"num_bits\": 8, \"type\"",
            "\"num_bits\": 4, \"type\"", "of 4 bits"},
           {kFp8Groups, "\"type\": \"float\"", "\"type\": \"int\"", "'int'"},
           {kFp8Groups, "\"input_activations\"",
            "\"output_activations\": {\"num_bits\": 8}, "
            "\"input_activations\"",
            "output_activations"},
           {kFp8Groups, "\"config_groups\"",
            "\"kv_cache_scheme\": {\"num_bits\": 8, \"dynamic\": false}, "
            "\"config_groups\"",
            "kv_cache_scheme"},
           {kMxfp4Groups, "\"num_bits\": 4", "\"num_bits\": 8", "of 8 bits"},
           {kMxfp4Groups, "\"type\": \"float\"", "\"type\": \"int\"", "'int'"},
           {kMxfp4Groups, "\"symmetric\": true", "\"symmetric\": false",
            "not symmetric"},
           {kMlx, "\"bits\": 4,", "\"bits\": 3,", "3 bits"},
           {kMlx, "{\"bits\": 8, \"group_size\": 64}", "8",
            "model.layers.0.mlp.gate: must be true, false or an object"},
           {kMlx, "\"quantization_config\": {",
            "\"quantization_config\": {\"quant_method\": \"gptq\", ",
            "contradicts"},
           {kMlx, "\"bits\": 4,", "\"bits\": 5, \"mode\": \"mxfp4\",",
            "of 5 bits"},
           {kMlx, "\"bits\": 8", "\"bits\": 6", "6 bits"},
           {kMlx, "\"group_size\": 128, \"bits\": 4,",
            "\"group_size\": 16, \"bits\": 4,", "16"},
           {kMlx, "\"bits\": 4,", "\"bits\": 4, \"mode\": \"nvfp4\",",
            "'nvfp4'"},
       }) {
    const std::string config =
        absl::StrReplaceAll(wrong.config, {{wrong.old_text, wrong.new_text}});
    ASSERT_NE(config, wrong.config) << wrong.old_text;
    const auto read = Read(config);
    ASSERT_FALSE(read.ok()) << wrong.new_text;
    EXPECT_EQ(ExitCodeOf(read.status()), 4);
    EXPECT_THAT(std::string(read.status().message()),
                HasSubstr(wrong.must_say));
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("config.json"));
  }
}

TEST(HfQuantisation, HostilePatternsEnd) {
  const auto slow = Read(
      absl::StrReplaceAll(kInt4, {{"re:.*self_attn.*", "re:(a|aa)+[bc]"}}));
  ASSERT_TRUE(slow.ok()) << slow.status();
  const auto scheme = slow->SchemeOf(std::string(64, 'a'));
  ASSERT_FALSE(scheme.ok());
  EXPECT_EQ(ExitCodeOf(scheme.status()), 4);
  EXPECT_THAT(std::string(scheme.status().message()),
              HasSubstr("cannot be applied"));
  std::string many = "re:a";
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&many, "\", \"re:", i);
  }
  EXPECT_FALSE(
      Read(absl::StrReplaceAll(kInt4, {{"re:.*self_attn.*", many}})).ok());
  EXPECT_FALSE(
      Read(absl::StrReplaceAll(
               kInt4, {{"re:.*self_attn.*", "re:" + std::string(5000, 'a')}}))
          .ok());
}

}  // namespace
}  // namespace millrace::model
