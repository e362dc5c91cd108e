// A checkpoint of every family, form and weight format opens as the ModelSpec
// that its options describe; provoked by writing random tiny ones.
#include "model/checkpoint/checkpoint.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/quant/tile.h"
#include "model/spec/model_costs.h"
#include "model/tokenizer/gguf_vocabulary.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::model {
namespace {

using ::millrace::kernels::WeightFormat;
using ::millrace::testing::ForFormat;
using ::millrace::testing::kTinyFamilies;
using ::millrace::testing::TempDir;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyFamilyName;
using ::millrace::testing::TinyModel;
using ::millrace::testing::WriteTinyFolder;
using ::millrace::testing::WriteTinyGguf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Checkpoint> MustOpen(const std::string& path) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
}

const AttentionOp& AttentionAt(const ModelSpec& spec, size_t layer) {
  return std::get<AttentionOp>(spec.layers[layer].operations[0]);
}

// Row `row` of a matrix as f32, read through the checkpoint.
std::vector<float> RowOf(const Checkpoint& checkpoint, const Matrix& matrix,
                         int64_t row) {
  const int64_t bytes = kernels::StoredRowBytes(matrix.format, matrix.cols);
  std::vector<std::byte> stored(static_cast<size_t>(bytes));
  EXPECT_TRUE(checkpoint
                  .Read(matrix.source.file_index,
                        matrix.source.offset + row * bytes,
                        absl::MakeSpan(stored))
                  .ok());
  std::vector<float> out(static_cast<size_t>(matrix.cols));
  kernels::DecodeStoredRow(matrix.format, stored.data(), matrix.cols,
                           out.data());
  return out;
}

double DeviationOf(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(Checkpoint, OpensEveryFamilyAsFolder) {
  for (const TinyFamily family : kTinyFamilies) {
    for (const WeightFormat format :
         {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBf16}) {
      SCOPED_TRACE(TinyFamilyName(family));
      TinyModel model;
      model.family = family;
      model.format = format;
      model.num_shards = format == WeightFormat::kF16 ? 3 : 1;
      TempDir dir;
      WriteTinyFolder(model, dir.path());
      const auto checkpoint = MustOpen(dir.path());
      ASSERT_NE(checkpoint, nullptr);
      const ModelSpec& spec = checkpoint->spec();
      EXPECT_EQ(spec.family, TinyFamilyName(family));
      EXPECT_EQ(spec.layers.size(), 6u);
      EXPECT_EQ(spec.hidden_size, 64);
      EXPECT_EQ(spec.vocab_size, 320);
      EXPECT_EQ(spec.context_length, 512);
      EXPECT_EQ(spec.embedding.format, format);
      EXPECT_EQ(checkpoint->files().size(),
                static_cast<size_t>(model.num_shards));
      EXPECT_THAT(spec.stop_tokens, ElementsAre(316, 318));
      EXPECT_EQ(spec.bos_token, 316);
      EXPECT_EQ(checkpoint->bos_token_text(), "<|endoftext|>");
      EXPECT_EQ(checkpoint->eos_token_text(), "<|im_end|>");
      ASSERT_NE(checkpoint->chat_template(), nullptr);
      ASSERT_NE(checkpoint->tokenizer_json_path(), nullptr);
      EXPECT_EQ(checkpoint->gguf_vocabulary(), nullptr);
      EXPECT_TRUE(checkpoint->generation_defaults().has_value());
      EXPECT_NEAR(
          DeviationOf(RowOf(*checkpoint, AttentionAt(spec, 5).q.weight, 63)),
          0.125, 0.05);
    }
  }
}

TEST(Checkpoint, OpensEveryFamilyAndFormatAsGguf) {
  for (const TinyFamily family : kTinyFamilies) {
    for (const WeightFormat format : testing::GgufFormats()) {
      SCOPED_TRACE(std::string(TinyFamilyName(family)) + " " +
                   kernels::TraitsOf(format).name);
      TinyModel model = ForFormat(family, format);
      model.num_layers = 2;
      TempDir dir;
      WriteTinyGguf(model, dir.File("tiny.gguf"));
      const auto checkpoint = MustOpen(dir.File("tiny.gguf"));
      ASSERT_NE(checkpoint, nullptr);
      const ModelSpec& spec = checkpoint->spec();
      EXPECT_EQ(spec.name, "tiny");
      EXPECT_EQ(spec.layers.size(), 2u);
      EXPECT_EQ(spec.embedding.format, format);
      EXPECT_THAT(spec.stop_tokens, ElementsAre(316, 318));
      ASSERT_NE(checkpoint->gguf_vocabulary(), nullptr);
      EXPECT_EQ(checkpoint->tokenizer_json_path(), nullptr);
      ASSERT_NE(checkpoint->chat_template(), nullptr);
      const AttentionOp& attention = AttentionAt(spec, 1);
      const bool interleaved = family == TinyFamily::kLlama ||
                               family == TinyFamily::kMistral ||
                               family == TinyFamily::kSmollm3;
      EXPECT_EQ(attention.rope->interleaved, interleaved);
      EXPECT_EQ(attention.window, 0);
      const double wanted =
          1 / std::sqrt(static_cast<double>(spec.hidden_size));
      EXPECT_NEAR(DeviationOf(RowOf(*checkpoint, attention.v.weight, 7)),
                  wanted, 0.5 * wanted);
    }
  }
}

TEST(Checkpoint, BothFormsHoldTheSameWeights) {
  for (const TinyFamily family : kTinyFamilies) {
    SCOPED_TRACE(TinyFamilyName(family));
    TinyModel model;
    model.family = family;
    model.num_layers = 1;
    TempDir dir;
    WriteTinyFolder(model, dir.path());
    WriteTinyGguf(model, dir.File("tiny.gguf"));
    const auto folder = MustOpen(dir.path());
    const auto gguf = MustOpen(dir.File("tiny.gguf"));
    ASSERT_TRUE(folder != nullptr && gguf != nullptr);
    const Matrix& q = AttentionAt(folder->spec(), 0).q.weight;
    const Matrix& twin = AttentionAt(gguf->spec(), 0).q.weight;
    const bool interleaved = AttentionAt(gguf->spec(), 0).rope->interleaved;
    // Row 3 of a head is the second of the second pair: 1 + 16 / 2.
    EXPECT_EQ(RowOf(*gguf, twin, 16 + 3),
              RowOf(*folder, q, 16 + (interleaved ? 9 : 3)));
    EXPECT_EQ(RowOf(*gguf, gguf->spec().head, 100),
              RowOf(*folder, folder->spec().head, 100));
    EXPECT_NE(folder->spec().digest, gguf->spec().digest);
  }
}

TEST(Checkpoint, FusedExpertsAreSlices) {
  TinyModel model;
  model.family = TinyFamily::kQwen3Moe;
  model.num_layers = 1;
  TempDir dir;
  WriteTinyFolder(model, dir.path());
  const auto separate = MustOpen(dir.path());
  model.fused_experts = true;
  TempDir fused_dir;
  WriteTinyFolder(model, fused_dir.path());
  WriteTinyGguf(model, fused_dir.File("fused.gguf"));
  model.fused_experts = false;
  WriteTinyGguf(model, fused_dir.File("stacked.gguf"));
  ASSERT_NE(separate, nullptr);
  const auto& wanted =
      std::get<MoeFfnOp>(separate->spec().layers[0].operations[1]);
  for (const std::string& path :
       {fused_dir.path(), fused_dir.File("fused.gguf"),
        fused_dir.File("stacked.gguf")}) {
    SCOPED_TRACE(path);
    const auto other = MustOpen(path);
    ASSERT_NE(other, nullptr);
    const auto& moe = std::get<MoeFfnOp>(other->spec().layers[0].operations[1]);
    ASSERT_EQ(moe.experts.size(), 8u);
    for (const size_t expert : {0u, 3u, 7u}) {
      const ExpertSpec& a = wanted.experts[expert];
      const ExpertSpec& b = moe.experts[expert];
      EXPECT_EQ(RowOf(*separate, a.gate, 63), RowOf(*other, b.gate, 63));
      EXPECT_EQ(RowOf(*separate, a.up, 0), RowOf(*other, b.up, 0));
      EXPECT_EQ(RowOf(*separate, a.down, 17), RowOf(*other, b.down, 17));
    }
    EXPECT_EQ(CostsOf(other->spec()).parameters,
              CostsOf(separate->spec()).parameters);
  }
}

TEST(Checkpoint, LayersDiffer) {
  TinyModel model;
  TempDir dir;
  const auto open = [&](TinyFamily family) {
    model.family = family;
    WriteTinyFolder(model, dir.path());
    return MustOpen(dir.path());
  };
  const auto mistral = open(TinyFamily::kMistral);
  EXPECT_EQ(AttentionAt(mistral->spec(), 0).window, 12);
  const auto qwen2 = open(TinyFamily::kQwen2);
  EXPECT_EQ(AttentionAt(qwen2->spec(), 1).window, 0);
  EXPECT_EQ(AttentionAt(qwen2->spec(), 2).window, 12);
  EXPECT_TRUE(AttentionAt(qwen2->spec(), 2).k.bias.has_value());
  const auto smollm3 = open(TinyFamily::kSmollm3);
  EXPECT_TRUE(AttentionAt(smollm3->spec(), 2).rope.has_value());
  EXPECT_FALSE(AttentionAt(smollm3->spec(), 3).rope.has_value());
  EXPECT_TRUE(AttentionAt(open(TinyFamily::kQwen3)->spec(), 0).q_norm);
}

TEST(Checkpoint, DigestFollowsConfigurationTableAndWeights) {
  TinyModel model;
  model.num_layers = 1;
  TempDir dir;
  const auto digest = [&] {
    WriteTinyFolder(model, dir.path());
    return MustOpen(dir.path())->spec().digest;
  };
  const std::string first = digest();
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(digest(), first);
  model.seed = 2;
  EXPECT_NE(digest(), first) << "other weights are another model";
  model.seed = 1;
  EXPECT_EQ(digest(), first);
  model.context_length = 1024;
  EXPECT_NE(digest(), first);
  model.context_length = 512;
  model.format = WeightFormat::kF32;
  EXPECT_NE(digest(), first);
}

TEST(Checkpoint, SplitGgufIsOneModel) {
  TinyModel model;
  model.num_layers = 2;
  model.tokenizer = false;
  auto writer = millrace::testing::MakeTinyGguf(model);
  const auto all = writer.tensors;
  const size_t half = all.size() / 2;
  TempDir dir;
  const auto write = [&](uint32_t number, size_t begin, size_t end) {
    auto part = writer;
    part.SetU32("split.no", number);
    part.SetU32("split.count", 2);
    part.SetU32("split.tensors.count", static_cast<uint32_t>(all.size()));
    part.tensors.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                        all.begin() + static_cast<std::ptrdiff_t>(end));
    dir.Write("m-0000" + std::to_string(number + 1) + "-of-00002.gguf",
              part.Build());
  };
  write(0, 0, half);
  write(1, half, all.size());
  const std::string first = dir.File("m-00001-of-00002.gguf");
  const std::string second = dir.File("m-00002-of-00002.gguf");
  const auto checkpoint = MustOpen(first);
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->spec().name, "m");
  EXPECT_THAT(checkpoint->files(), ElementsAre(first, second));
  EXPECT_EQ(checkpoint->spec().head.source.file_index, 1);
  const auto from_second = Checkpoint::Open(second);
  ASSERT_FALSE(from_second.ok());
  EXPECT_THAT(HintOf(from_second.status()), HasSubstr(first));
  write(1, half, all.size() - 1);
  EXPECT_FALSE(Checkpoint::Open(first).ok());
  write(1, half - 1, all.size());
  EXPECT_FALSE(Checkpoint::Open(first).ok());
  std::filesystem::remove(second);
  const auto missing = Checkpoint::Open(first);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(second));
}

TEST(Checkpoint, ReadIsBounded) {
  TinyModel model;
  model.num_layers = 1;
  TempDir dir;
  WriteTinyFolder(model, dir.path());
  const auto checkpoint = MustOpen(dir.path());
  std::byte byte;
  EXPECT_FALSE(checkpoint->Read(-1, 0, absl::MakeSpan(&byte, 1)).ok());
  EXPECT_FALSE(checkpoint->Read(1, 0, absl::MakeSpan(&byte, 1)).ok());
  EXPECT_FALSE(
      checkpoint->Read(0, int64_t{1} << 40, absl::MakeSpan(&byte, 1)).ok());
}

TEST(Checkpoint, WhatIsNoModelIsRefused) {
  TempDir dir;
  for (const std::string& path :
       {dir.path(), dir.File("absent"), dir.Write("x.gguf", "text"),
        std::string("/dev/null")}) {
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_FALSE(checkpoint.ok()) << path;
    EXPECT_EQ(ExitCodeOf(checkpoint.status()), 4);
  }
}

}  // namespace
}  // namespace millrace::model
