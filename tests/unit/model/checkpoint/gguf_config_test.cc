// GGUF keys become the sizes, switches and rotary rules of llama.cpp, and what
// is wrong or unknown is refused by key; provoked by changing one key of a tiny
// model at a time.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::model {
namespace {

using ::millrace::testing::GgufWriter;
using ::millrace::testing::MakeTinyGguf;
using ::millrace::testing::TempDir;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;
using ::testing::HasSubstr;

using Change = std::function<void(GgufWriter&)>;

absl::StatusOr<ModelSpec> SpecWith(const Change& change,
                                   TinyFamily family = TinyFamily::kLlama) {
  TinyModel model;
  model.family = family;
  model.num_layers = 2;
  GgufWriter writer = MakeTinyGguf(model);
  change(writer);
  TempDir dir;
  const auto checkpoint = Checkpoint::Open(dir.Write("m.gguf", writer.Build()));
  if (!checkpoint.ok()) {
    return checkpoint.status();
  }
  return (*checkpoint)->spec();
}

RopeSpec RopeWith(const Change& change) {
  const auto spec = SpecWith(change);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *std::get<AttentionOp>(spec->layers[0].operations[0]).rope
                   : RopeSpec();
}

TEST(GgufConfig, RotaryRules) {
  EXPECT_EQ(RopeWith([](GgufWriter&) {}).scaling, RopeScalingKind::kNone);
  const RopeSpec old_key =
      RopeWith([](GgufWriter& w) { w.SetF32("llama.rope.scale_linear", 4); });
  EXPECT_EQ(old_key.scaling, RopeScalingKind::kLinear);
  EXPECT_EQ(old_key.factor, 4);
  EXPECT_EQ(RopeWith([](GgufWriter& w) {
              w.SetString("llama.rope.scaling.type", "none");
              w.SetF32("llama.rope.scaling.factor", 4);
            }).scaling,
            RopeScalingKind::kNone);
  const RopeSpec yarn = RopeWith([](GgufWriter& w) {
    w.SetString("llama.rope.scaling.type", "yarn");
    w.SetF32("llama.rope.scaling.factor", 4);
    w.SetU32("llama.rope.scaling.original_context_length", 128);
    w.SetF32("llama.rope.scaling.yarn_attn_factor", 0.5);
    w.SetF32("llama.rope.scaling.yarn_beta_fast", 16);
  });
  EXPECT_EQ(yarn.scaling, RopeScalingKind::kYarn);
  EXPECT_EQ(yarn.original_context, 128);
  EXPECT_EQ(yarn.attention_factor, 0.5 * (1 + 0.1 * std::log(4.0)));
  EXPECT_EQ(yarn.beta_fast, 16);
  EXPECT_EQ(yarn.beta_slow, 1);
  EXPECT_TRUE(yarn.truncate);
}

TEST(GgufConfig, Divisors) {
  const std::string ones(
      "\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f"
      "\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f",
      32);
  const RopeSpec rope = RopeWith(
      [&](GgufWriter& w) { w.AddTensor("rope_freqs.weight", {8}, 0, ones); });
  ASSERT_TRUE(rope.divisors.has_value());
  EXPECT_EQ(rope.divisors->size, 8);
  const auto zero = SpecWith([](GgufWriter& w) {
    w.AddTensor("rope_freqs.weight", {8}, 0, std::string(32, '\0'));
  });
  ASSERT_FALSE(zero.ok());
  EXPECT_THAT(std::string(zero.status().message()),
              HasSubstr("rope_freqs.weight"));
}

TEST(GgufConfig, HeadAndBiasesArePresentOrNot) {
  const auto tied = SpecWith([](GgufWriter& w) { w.tensors.pop_back(); });
  ASSERT_TRUE(tied.ok()) << tied.status();
  EXPECT_TRUE(tied->head_is_embedding);
  const auto biased = SpecWith([](GgufWriter& w) {
    w.AddTensor("blk.1.attn_output.bias", {64}, 0, std::string(256, '\0'));
  });
  ASSERT_TRUE(biased.ok()) << biased.status();
  EXPECT_TRUE(std::get<AttentionOp>(biased->layers[1].operations[0])
                  .o.bias.has_value());
  EXPECT_FALSE(std::get<AttentionOp>(biased->layers[0].operations[0])
                   .o.bias.has_value());
  const auto missing =
      SpecWith([](GgufWriter& w) { w.Tensor("blk.1.attn_k.bias").name = "x"; },
               TinyFamily::kQwen2);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("blk.1.attn_k.bias"));
}

struct Wrong {
  Change change;
  const char* must_say;
};

TEST(GgufConfig, RefusesByKeyOrTensor) {
  for (const Wrong& wrong : std::vector<Wrong>{
           {[](auto& w) { w.Remove("general.architecture"); },
            "general.architecture"},
           {[](auto& w) { w.SetString("general.architecture", "abacus"); },
            "abacus"},
           {[](auto& w) { w.Remove("llama.block_count"); },
            "llama.block_count"},
           {[](auto& w) { w.SetString("llama.block_count", "2"); },
            "llama.block_count"},
           {[](auto& w) { w.SetU32("llama.block_count", 1000000000); },
            "llama.block_count"},
           {[](auto& w) { w.SetU32("llama.block_count", 3); }, "blk.2."},
           {[](auto& w) { w.SetU32("llama.attention.head_count", 0); },
            "llama.attention.head_count"},
           {[](auto& w) { w.SetU32("llama.attention.head_count_kv", 3); },
            "llama.attention.head_count_kv"},
           {[](auto& w) { w.SetU32("llama.attention.value_length", 8); },
            "llama.attention.value_length"},
           {[](auto& w) { w.SetU32("llama.rope.dimension_count", 18); },
            "llama.rope.dimension_count"},
           {[](auto& w) { w.SetU32("llama.rope.dimension_count", 7); },
            "llama.rope.dimension_count"},
           {[](auto& w) { w.SetF32("llama.rope.freq_base", 0); },
            "llama.rope.freq_base"},
           {[](auto& w) { w.SetF32("llama.rope.freq_base", NAN); },
            "llama.rope.freq_base"},
           {[](auto& w) { w.SetString("llama.rope.scaling.type", "longrope"); },
            "longrope"},
           {[](auto& w) {
              w.SetString("llama.rope.scaling.type", "yarn");
              w.SetF32("llama.rope.scaling.yarn_ext_factor", 0.5);
            },
            "yarn_ext_factor"},
           {[](auto& w) { w.SetU32("llama.expert_count", 8); },
            "llama.expert_count"},
           {[](auto& w) { w.SetU32("llama.embedding_length", 128); },
            "token_embd.weight"},
           {[](auto& w) {
              w.Tensor("blk.0.attn_q.weight").ne = {32, 128};
            },
            "blk.0.attn_q.weight"},
           {[](auto& w) {
              // NVFP4: known in size, not computed with.
              w.Tensor("blk.0.attn_q.weight").type = 40;
            },
            "NVFP4"},
           {[](auto& w) {
              w.SetStrings("tokenizer.ggml.tokens",
                           std::vector<std::string>(321, "x"));
              w.Remove("tokenizer.ggml.token_type");
            },
            "tokenizer.ggml.tokens"},
       }) {
    const auto spec = SpecWith(wrong.change);
    ASSERT_FALSE(spec.ok()) << wrong.must_say;
    EXPECT_EQ(ExitCodeOf(spec.status()), 4);
    EXPECT_THAT(std::string(spec.status().message()),
                HasSubstr(wrong.must_say));
  }
}

}  // namespace
}  // namespace millrace::model
