// config.json becomes the sizes, switches and rotary rules that its family
// defines, and what is wrong or unknown is refused by key; provoked by changing
// one key at a time.
#include "model/checkpoint/hf_config.h"

#include <cmath>
#include <map>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::model {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Fields = std::map<std::string, std::string>;

Fields Llama() {
  return {{"model_type", "\"llama\""},  {"hidden_size", "64"},
          {"intermediate_size", "96"},  {"num_hidden_layers", "5"},
          {"num_attention_heads", "4"}, {"num_key_value_heads", "2"},
          {"vocab_size", "300"},        {"max_position_embeddings", "256"}};
}

Fields With(const Fields& changes, Fields base = Llama()) {
  for (const auto& [key, value] : changes) {
    base[key] = value;
  }
  return base;
}

absl::StatusOr<DecoderConfig> Read(const Fields& fields) {
  std::string text;
  for (const auto& [key, value] : fields) {
    if (value.empty()) {
      continue;  // left out
    }
    text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  }
  const auto json = ParseJson(text + "}", "config.json");
  EXPECT_TRUE(json.ok()) << json.status();
  const auto object = JsonObject::From(*json, "config.json");
  return ReadHfConfig(*object, "config.json");
}

DecoderConfig MustRead(const Fields& fields) {
  const auto config = Read(fields);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : DecoderConfig();
}

TEST(HfConfig, DefaultsOfAbsentKeys) {
  const DecoderConfig config = MustRead(With({{"num_key_value_heads", ""}}));
  EXPECT_EQ(config.family, "llama");
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.eps, 1e-6);
  EXPECT_EQ(config.rope.theta, 10000);
  EXPECT_EQ(config.rope.rotary_dims, 16);
  EXPECT_EQ(config.rope.scaling, RopeScalingKind::kNone);
  EXPECT_FALSE(config.rope.interleaved);
  EXPECT_EQ(config.context_length, 256);
  EXPECT_EQ(config.tied, std::nullopt);
  EXPECT_EQ(config.qkv_bias, BiasRule::kNone);
  EXPECT_THAT(config.windows, Each(0));
  EXPECT_EQ(MustRead(With({{"model_type", ""},
                           {"architectures", "[\"Qwen2ForCausalLM\"]"}}))
                .family,
            "qwen2");
}

TEST(HfConfig, RotaryRules) {
  const DecoderConfig linear = MustRead(
      With({{"rope_scaling", R"({"type": "linear", "factor": 2.5})"}}));
  EXPECT_EQ(linear.rope.scaling, RopeScalingKind::kLinear);
  EXPECT_EQ(linear.rope.factor, 2.5);
  const DecoderConfig dynamic = MustRead(
      With({{"rope_scaling", R"({"type": "dynamic", "factor": 1.5})"}}));
  EXPECT_EQ(dynamic.rope.scaling, RopeScalingKind::kDynamic);
  EXPECT_EQ(dynamic.rope.original_context, 256);
  EXPECT_EQ(dynamic.context_length, 384);
  const DecoderConfig llama3 =
      MustRead(With({{"rope_parameters",
                      R"({"rope_type": "llama3", "rope_theta": 5e5, "factor": 8,
            "low_freq_factor": 1, "high_freq_factor": 4,
            "original_max_position_embeddings": 64})"}}));
  EXPECT_EQ(llama3.rope.scaling, RopeScalingKind::kLlama3);
  EXPECT_EQ(llama3.rope.theta, 5e5);
  EXPECT_EQ(llama3.rope.original_context, 64);
  EXPECT_EQ(llama3.context_length, 256);
  EXPECT_EQ(MustRead(With({{"rope_parameters",
                            R"({"rope_type": "default", "rope_theta": 7})"}}))
                .rope.theta,
            7);
}

TEST(HfConfig, YarnMagnitudeIsResolved) {
  const auto yarn = [](const std::string& more) {
    return MustRead(With({{"rope_scaling", R"({"rope_type": "yarn", "factor": 4,
                     "original_max_position_embeddings": 128)" +
                                               more + "}"}}));
  };
  const double plain = 0.1 * std::log(4.0) + 1;
  EXPECT_EQ(yarn("").rope.attention_factor, plain);
  EXPECT_EQ(yarn("").rope.beta_fast, 32);
  EXPECT_EQ(yarn("").context_length, 512);
  EXPECT_TRUE(yarn("").rope.truncate);
  EXPECT_FALSE(yarn(", \"truncate\": false").rope.truncate);
  EXPECT_EQ(yarn(", \"attention_factor\": 0.5").rope.attention_factor, 0.5);
  EXPECT_EQ(
      yarn(", \"mscale\": 1.0, \"mscale_all_dim\": 1.0").rope.attention_factor,
      1);
  EXPECT_EQ(
      yarn(", \"mscale\": 2.0, \"mscale_all_dim\": 0").rope.attention_factor,
      plain);
  EXPECT_EQ(
      yarn(", \"mscale\": 2.0, \"mscale_all_dim\": 1").rope.attention_factor,
      (0.2 * std::log(4.0) + 1) / plain);
  const DecoderConfig implied =
      MustRead(With({{"rope_scaling", R"({"rope_type": "yarn", "factor": null,
                            "original_max_position_embeddings": 32})"}}));
  EXPECT_EQ(implied.rope.factor, 8);
  EXPECT_EQ(implied.context_length, 256);
}

TEST(HfConfig, Windows) {
  const auto windows = [](const Fields& changes) {
    return MustRead(With(changes)).windows;
  };
  EXPECT_THAT(
      windows({{"model_type", "\"mistral\""}, {"sliding_window", "12"}}),
      ElementsAre(12, 12, 12, 12, 12));
  EXPECT_THAT(
      windows({{"model_type", "\"mistral\""}, {"sliding_window", "null"}}),
      Each(0));
  EXPECT_THAT(windows({{"model_type", "\"mistral\""}}), Each(4096));
  Fields qwen = {{"model_type", "\"qwen3\""},
                 {"sliding_window", "9"},
                 {"max_window_layers", "3"}};
  EXPECT_THAT(windows(qwen), Each(0));
  qwen["use_sliding_window"] = "true";
  EXPECT_THAT(windows(qwen), ElementsAre(0, 0, 0, 9, 9));
  qwen["layer_types"] =
      R"(["sliding_attention", "full_attention", "sliding_attention",
          "full_attention", "full_attention"])";
  EXPECT_THAT(windows(qwen), ElementsAre(9, 0, 9, 0, 0));
  EXPECT_THAT(windows({{"sliding_window", "12"}}), Each(0)) << "llama";
}

TEST(HfConfig, LayersWithoutRotation) {
  Fields smollm3 = With({{"model_type", "\"smollm3\""}});
  EXPECT_THAT(MustRead(smollm3).rotated,
              ElementsAre(true, true, true, false, true));
  EXPECT_THAT(
      MustRead(With({{"no_rope_layer_interval", "2"}}, smollm3)).rotated,
      ElementsAre(true, false, true, false, true));
  EXPECT_THAT(
      MustRead(With({{"no_rope_layers", "[1, 1, 0, 1, 0]"}}, smollm3)).rotated,
      ElementsAre(true, true, false, true, false));
  EXPECT_THAT(MustRead(With({{"no_rope_layers", "[0, 0, 0, 0, 0]"}})).rotated,
              Each(true))
      << "llama";
}

TEST(HfConfig, Biases) {
  const Fields both = {{"attention_bias", "true"}, {"mlp_bias", "true"}};
  const DecoderConfig llama = MustRead(With(both));
  EXPECT_EQ(llama.qkv_bias, BiasRule::kRequired);
  EXPECT_EQ(llama.output_bias, BiasRule::kRequired);
  EXPECT_EQ(llama.ffn_bias, BiasRule::kRequired);
  const DecoderConfig qwen2 = MustRead(With({{"model_type", "\"qwen2\""}}));
  EXPECT_EQ(qwen2.qkv_bias, BiasRule::kRequired);
  EXPECT_EQ(qwen2.output_bias, BiasRule::kNone);
  const DecoderConfig qwen3 =
      MustRead(With({{"model_type", "\"qwen3\""}}, With(both)));
  EXPECT_EQ(qwen3.output_bias, BiasRule::kRequired);
  EXPECT_EQ(qwen3.ffn_bias, BiasRule::kNone);
}

Fields Moe() {
  return With({{"model_type", "\"qwen3_moe\""},
               {"num_experts", "8"},
               {"num_experts_per_tok", "2"},
               {"moe_intermediate_size", "32"}});
}

TEST(HfConfig, Experts) {
  const DecoderConfig plain = MustRead(Moe());
  EXPECT_FALSE(plain.moe->renormalise);
  EXPECT_THAT(plain.moe->sparse, Each(true));
  const DecoderConfig mixed = MustRead(With({{"norm_topk_prob", "true"},
                                             {"decoder_sparse_step", "2"},
                                             {"mlp_only_layers", "[1]"}},
                                            Moe()));
  EXPECT_TRUE(mixed.moe->renormalise);
  EXPECT_THAT(mixed.moe->sparse, ElementsAre(false, false, false, true, false));
}

struct Wrong {
  Fields changes;
  const char* must_say;
};

TEST(HfConfig, RefusesByKey) {
  const std::string yarn = R"({"rope_type": "yarn", "factor": )";
  for (const Wrong& wrong : std::vector<Wrong>{
           {{{"hidden_size", ""}}, "hidden_size: is missing"},
           {{{"hidden_size", "-64"}}, "hidden_size"},
           {{{"hidden_size", "\"sixty\""}}, "hidden_size"},
           {{{"hidden_size", "4611686018427387904"}}, "hidden_size"},
           {{{"num_attention_heads", "0"}}, "num_attention_heads"},
           {{{"num_attention_heads", "5"}, {"num_key_value_heads", "5"}},
            "num_attention_heads"},
           {{{"num_key_value_heads", "8"}}, "num_key_value_heads"},
           {{{"num_hidden_layers", "1000000000"}}, "num_hidden_layers"},
           {{{"head_dim", "15"}}, "head_dim"},
           {{{"vocab_size", "0"}}, "vocab_size"},
           {{{"max_position_embeddings", ""}}, "max_position_embeddings"},
           {{{"rms_norm_eps", "-1"}}, "rms_norm_eps"},
           {{{"rope_theta", "0"}}, "rope_theta"},
           {{{"rope_scaling", "7"}}, "rope_scaling"},
           {{{"rope_scaling", R"({"rope_type": "spiral"})"}}, "spiral"},
           {{{"rope_scaling", R"({"rope_type": "linear"})"}}, "factor"},
           {{{"rope_scaling", yarn + "0.5}"}}, "factor"},
           {{{"rope_scaling", yarn + "2, \"beta_fast\": 0}"}}, "beta_fast"},
           {{{"rope_scaling", R"({"rope_type": "llama3", "factor": 8,
               "low_freq_factor": 4, "high_freq_factor": 4,
               "original_max_position_embeddings": 64})"}},
            "high_freq_factor"},
           {{{"hidden_act", "\"gelu\""}}, "gelu"},
           {{{"model_type", "\"abacus\""}}, "abacus"},
           {{{"model_type", ""}}, "model_type"},
           {{{"model_type", "\"smollm3\""}, {"no_rope_layers", "[1]"}},
            "no_rope_layers"},
           {{{"model_type", "\"smollm3\""}, {"no_rope_layer_interval", "0"}},
            "no_rope_layer_interval"},
           {{{"model_type", "\"mistral\""}, {"sliding_window", "0"}},
            "sliding_window"},
           {{{"rope_interleaved", "true"}}, "rope_interleaved"},
       }) {
    const auto config = Read(With(wrong.changes));
    ASSERT_FALSE(config.ok()) << wrong.must_say;
    EXPECT_EQ(ExitCodeOf(config.status()), 4);
    EXPECT_THAT(std::string(config.status().message()),
                HasSubstr(wrong.must_say));
  }
  for (const Wrong& wrong : std::vector<Wrong>{
           {{{"num_experts", ""}}, "num_experts"},
           {{{"num_experts_per_tok", "9"}}, "num_experts_per_tok"},
           {{{"decoder_sparse_step", "0"}}, "decoder_sparse_step"},
           {{{"mlp_only_layers", "[-1]"}}, "mlp_only_layers"},
           {{{"mlp_only_layers", "1"}}, "mlp_only_layers"},
       }) {
    const auto config = Read(With(wrong.changes, Moe()));
    ASSERT_FALSE(config.ok()) << wrong.must_say;
    EXPECT_THAT(std::string(config.status().message()),
                HasSubstr(wrong.must_say));
  }
}

}  // namespace
}  // namespace millrace::model
