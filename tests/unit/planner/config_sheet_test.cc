// A configuration alone gives a model's published sizes; provoked with the
// configurations of published models, whose totals are known, and with files
// whose keys are missing, of another type, or absurd.
#include "planner/families/config_sheet.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/spec_from_config.h"
#include "planner/sheet_scratch.h"
#include "planner/spec_sheet.h"

namespace millrace::planner {
namespace {

using ::testing::HasSubstr;

constexpr model::KvFormat kKv = model::kKv16Bit;

std::string PathOf(const std::string& name) {
  return absl::StrCat(MILLRACE_TEST_DATA_DIR, "/configs/", name, ".json");
}

std::string TextOf(const std::string& name) {
  const auto text = ReadFile(PathOf(name), int64_t{1} << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("{}");
}

absl::StatusOr<ModelSheet> Parse(const std::string& text) {
  const auto json = ParseJson(text, "config.json");
  EXPECT_TRUE(json.ok()) << json.status();
  const auto object = JsonObject::From(*json, "config.json");
  EXPECT_TRUE(object.ok()) << object.status();
  return ReadConfigSheet(*object, "config.json");
}

ModelSheet SheetOf(const std::string& name) {
  const auto sheet = Parse(TextOf(name));
  EXPECT_TRUE(sheet.ok()) << name << ": " << sheet.status();
  return sheet.ok() ? *sheet : ModelSheet();
}

SheetTotals TotalsOf(const std::string& name) {
  return TotalsOf(SheetOf(name), kKv);
}

struct Published {
  const char* name;
  int64_t parameters;
  int64_t kv_bytes_per_token;  // of layers that see all positions, 16 bit
};

// Language model alone, without vision and layers for several tokens at once.
constexpr Published kPublished[] = {
    {"deepseek-v3", 671'026'419'200, 61 * 576 * 2},
    {"gemma-2-9b", 9'241'705'984, 21 * 8192},
    {"gemma-3-1b", 999'885'952, 4 * 1024},
    {"gemma-3-4b", 3'880'263'168, 5 * 4096},
    {"gemma-3-27b", 27'009'346'304, 10 * 8192},
    {"gemma-4-26b-a4b", 25'233'141'790, 5 * 4096},
    {"gemma-4-31b", 30'697'345'340, 10 * 8192},
    {"gpt-oss-120b", 116'829'156'672, 18 * 2048},
    {"gpt-oss-20b", 20'914'757'184, 12 * 2048},
    {"kimi-k2-instruct", 1'026'408'232'448, 61 * 576 * 2},
    {"kimi-k2.5", 1'026'408'232'448, 61 * 576 * 2},
    {"kimi-k3", 2'779'484'476'000, 24 * 576 * 2},
    {"kimi-linear-48b-a3b", 49'122'681'728, 7 * 576 * 2},
    {"lfm2-1.2b", 1'170'340'608, 6 * 2048},
    {"lfm2-8b-a1b", 8'339'930'560, 6 * 2048},
    {"qwen3-next-80b-a3b", 79'674'391'296, 12 * 2048},
    {"qwen3.5-27b", 26'895'998'464, 16 * 4096},
};

class PublishedModels : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedModels, HaveTheirPublishedSizes) {
  const SheetTotals totals = TotalsOf(GetParam().name);
  EXPECT_EQ(totals.parameters, GetParam().parameters);
  EXPECT_EQ(totals.kv_bytes_per_token, GetParam().kv_bytes_per_token);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedModels,
                         ::testing::ValuesIn(kPublished), [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& letter : name) {
                             letter =
                                 letter == '-' || letter == '.' ? '_' : letter;
                           }
                           return name;
                         });

// Billions, as model cards give them, of parameters that a token multiplies.
TEST(ConfigSheet, ActiveParameters) {
  const std::pair<const char*, double> cases[] = {
      {"gpt-oss-120b", 5.13},       {"gpt-oss-20b", 3.61},
      {"kimi-k2-instruct", 31.69},  {"kimi-k3", 104.17},
      {"qwen3-next-80b-a3b", 3.56}, {"gemma-4-26b-a4b", 3.82}};
  for (const auto& [name, billions] : cases) {
    EXPECT_NEAR(static_cast<double>(TotalsOf(name).parameters_active) / 1e9,
                billions, 0.006)
        << name;
  }
}

TEST(ConfigSheet, KimiK3) {
  const ModelSheet sheet = SheetOf("kimi-k3");
  const ModelCosts costs = CostsOfSheet(sheet, {kKv, 256});
  ASSERT_EQ(costs.layers.size(), 93U);
  constexpr int64_t kExpert = 17'547'264;
  constexpr int64_t kState = int64_t{6} << 20;
  constexpr int64_t kTaps = 3 * 36'864 * 4;
  int64_t with_kv = 0;
  for (size_t i = 0; i < 93; ++i) {
    const LayerCost& layer = costs.layers[i];
    // Counted from 1: 4, 8, ..., 92, and the last one.
    const bool latent = (i + 1) % 4 == 0 || i == 92;
    with_kv += latent ? 1 : 0;
    EXPECT_EQ(layer.kv_per_token, latent ? 1152 : 0) << i;
    EXPECT_EQ(layer.state_per_sequence, latent ? 0 : kState + kTaps) << i;
    EXPECT_EQ(layer.kv_positions_max, 0);
    if (i > 0) {
      EXPECT_EQ(layer.experts.count, 896);
      EXPECT_EQ(layer.experts.used, 16);
      EXPECT_EQ(layer.experts.bytes_each, kExpert);
      // Linear attention multiplies more in BF16 than its experts in MXFP4.
      EXPECT_EQ(layer.format, latent ? "mxfp4" : "bf16");
    }
  }
  EXPECT_EQ(with_kv, 24);
  // Experts of a layer: 15.7 GB. Read for one token: 25.83 GB in all layers.
  EXPECT_EQ(kExpert * 896, 15'722'348'544);
  EXPECT_EQ(kExpert * 16 * 92 / 10'000'000, 2582);
  const SheetTotals totals = TotalsOf(sheet, kKv);
  EXPECT_EQ(totals.kv_bytes_per_token, 27'648);
  EXPECT_EQ(totals.recurrent_bytes, 69 * kState);
  EXPECT_EQ(totals.convolution_bytes, 69 * kTaps);
  EXPECT_EQ(totals.stored_bytes / 10'000'000'000, 155);  // 1.56 TB
  EXPECT_NEAR(static_cast<double>(totals.stored_bytes), 1.56e12, 1e9);
}

// After 12 i layers the running sum and i banked vectors, else one more.
TEST(ConfigSheet, VectorsAcrossCutsOfKimiK3) {
  const ModelSheet sheet = SheetOf("kimi-k3");
  for (int64_t i = 0; i < 93; ++i) {
    const int64_t expected = i % 12 == 0 ? 1 + i / 12 : 2 + i / 12;
    EXPECT_EQ(sheet.layers[static_cast<size_t>(i)].vectors, expected) << i;
  }
  EXPECT_EQ(sheet.layers[92].vectors, 9);
}

TEST(ConfigSheet, ExpertFormats) {
  // FP8 with one f32 scale for 16 rows and 128 columns; INT4 with bf16 scales.
  EXPECT_NEAR(
      static_cast<double>(
          TotalsOf(SheetOf("deepseek-v3").layers[9].expert).weights_bytes),
      44.04e6 * (1 + 4.0 / (16 * 128)), 0.02e6);
  EXPECT_EQ(TotalsOf(SheetOf("kimi-k2.5").layers[9].expert).weights_bytes,
            3 * 2048 * 7168 / 32 * 18);
  // 90 blocks of MXFP4 a row; biases are held as f32.
  EXPECT_EQ(TotalsOf(SheetOf("gpt-oss-120b").layers[0].expert).stored_bytes,
            3 * 2880 * 90 * 17 + 2 * 3 * 2880);
  const ModelSheet deepseek = SheetOf("deepseek-v3");
  EXPECT_FALSE(deepseek.layers[9].weights.matrices[5].may_requantise);
  EXPECT_EQ(deepseek.layers[9].weights.matrices[5].format,
            kernels::WeightFormat::kBf16);
  EXPECT_EQ(deepseek.last.matrices[0].format, kernels::WeightFormat::kBf16);
  EXPECT_EQ(deepseek.first.matrices[0].format, kernels::WeightFormat::kBf16);
}

TEST(ConfigSheet, Windows) {
  const ModelCosts costs = CostsOfSheet(SheetOf("gemma-3-27b"), {kKv, 256});
  EXPECT_EQ(costs.layers[0].kv_per_token, 8192);
  // Window and chunk in whole blocks, and one more that they may straddle.
  EXPECT_EQ(costs.layers[0].kv_positions_max, 1024 + 256 + 64);
  EXPECT_EQ(costs.layers[5].kv_positions_max, 0);
  EXPECT_EQ(SheetOf("gpt-oss-20b").layers[0].window, 128);
  EXPECT_EQ(SheetOf("gpt-oss-20b").layers[1].window, 0);
}

// Gemma 4 E2B: 20 layers keep no KV, and every layer has its own embeddings.
TEST(ConfigSheet, SharedKvAndEmbeddingsPerLayer) {
  const ModelSheet sheet = SheetOf("gemma-4-e2b");
  for (size_t i = 0; i < 35; ++i) {
    const int64_t bytes = KvBytesPerToken(sheet.layers[i], kKv);
    EXPECT_EQ(bytes, i >= 15 ? 0 : i % 5 == 4 ? 2048 : 1024) << i;
    EXPECT_EQ(TotalsOf(sheet.layers[i].tables).parameters, 262144 * 256);
  }
  // 2.35 billion parameters, of which a token reads a row.
  EXPECT_EQ(35 * 262144 * int64_t{256} / 10'000'000, 234);
  const ModelCosts costs = CostsOfSheet(sheet, {kKv, 256});
  EXPECT_GT(costs.layers[0].weights_bytes, 262144 * 256 * 2);
  EXPECT_LT(costs.layers[0].bytes_per_token, 262144 * 256 * 2);
  // The hidden state and the embedded token; behind the layers that others
  // share KV with, that KV too: 512 and 1024 values are one vector of 1536.
  EXPECT_EQ(sheet.layers[0].vectors, 1);
  EXPECT_EQ(sheet.layers[1].vectors, 2);
  EXPECT_EQ(sheet.layers[13].vectors, 2);
  EXPECT_EQ(sheet.layers[14].vectors, 3);
  EXPECT_EQ(sheet.layers[15].vectors, 3);
  EXPECT_EQ(sheet.layers[34].vectors, 3);
  // Twice as wide where KV is shared.
  EXPECT_EQ(sheet.layers[14].weights.matrices[4].rows, 6144);
  EXPECT_EQ(sheet.layers[15].weights.matrices[2].rows, 12288);
}

// A node whose layers read KV that another one keeps needs a copy of it, once
// for each kind of layer; provoked by cuts around layers 13 and 14.
TEST(ConfigSheet, SharedKvBehindACut) {
  const ModelSheet sheet = SheetOf("gemma-4-e2b");
  ScratchShape shape = {16, {}, 0, 1000, {kKv, 256}};
  const ScratchFunction without = ScratchOfSheet(sheet, shape);
  shape.sequences = 3;
  const ScratchFunction with = ScratchOfSheet(sheet, shape);
  // 16 whole blocks; of a window of 512, a chunk and a block more.
  const int64_t full = 3 * 1024 * 2048;
  const int64_t window = 3 * (512 + 256 + 64) * 1024;
  const auto copied = [&](const std::vector<LayerRun>& runs) {
    return with(runs) - without(runs);
  };
  EXPECT_EQ(copied({{0, 35}}), 0);
  EXPECT_EQ(copied({{13, 35}}), 0);
  EXPECT_EQ(copied({{0, 15}}), 0);
  EXPECT_EQ(copied({{1, 13}}), 0);
  EXPECT_EQ(copied({{14, 35}}), window);
  EXPECT_EQ(copied({{15, 35}}), window + full);
  EXPECT_EQ(copied({{16, 19}}), window);
  EXPECT_EQ(copied({{19, 20}}), full);
  EXPECT_EQ(copied({{0, 14}, {20, 35}}), full);
  EXPECT_EQ(copied({{3, 5}, {13, 14}, {33, 35}}), full);
  // Sums beyond any memory are cut.
  shape.sequences = int64_t{1} << 30;
  shape.context = int64_t{1} << 30;
  const LayerRun run = {15, 35};
  EXPECT_GT(ScratchOfSheet(sheet, shape)({&run, 1}), int64_t{1} << 59);
}

TEST(ConfigSheet, StateOfConvolutionsAndDeltaNetworks) {
  EXPECT_EQ(TotalsOf("lfm2-1.2b").convolution_bytes, 10 * 2 * 2048 * 4);
  EXPECT_EQ(TotalsOf("lfm2-1.2b").recurrent_bytes, 0);
  EXPECT_EQ(TotalsOf("qwen3-next-80b-a3b").recurrent_bytes, int64_t{72} << 20);
  EXPECT_EQ(TotalsOf("kimi-linear-48b-a3b").recurrent_bytes, int64_t{40} << 20);
  EXPECT_EQ(TotalsOf("kimi-linear-48b-a3b").convolution_bytes,
            20 * 3 * 12288 * 4);
}

// Costs of a model that the engine runs are the same by way of its sheet.
TEST(ConfigSheet, SheetsOfSpecsCostTheSame) {
  for (const char* name : {"llama-3.1-405b", "qwen3-30b-a3b"}) {
    const auto spec = model::SpecFromConfig(PathOf(name));
    ASSERT_TRUE(spec.ok()) << spec.status();
    const CostsShape shape = {kKv, 256};
    EXPECT_EQ(CostsOfSheet(SheetOfSpec(*spec), shape),
              CostsOfSpec(*spec, shape));
  }
  const auto spec = model::SpecFromConfig(PathOf("llama-3.1-405b"));
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(TotalsOf(SheetOfSpec(*spec), kKv).parameters, 405'853'388'800);
}

class HostileConfigs : public ::testing::TestWithParam<const char*> {};

// Every number of every configuration, replaced by what no model has: refused
// with the file, the key and a remedy, or of no consequence for costs.
TEST_P(HostileConfigs, AreRefusedByKey) {
  const std::string text = TextOf(GetParam());
  const bool inside = absl::StrContains(text, "\"text_config\"");
  int refused = 0;
  const auto parsed = ParseJson(text, "config.json");
  ASSERT_TRUE(parsed.ok());
  const auto& all = parsed->get_object();
  const auto& sizes = inside ? all.at("text_config").get_object() : all;
  for (const auto& member : sizes) {
    if (!member.value().is_int64()) {
      continue;
    }
    for (const char* value :
         {"-1", "0.5", "1e300", "4611686018427387904", "\"7\"", "[]", "{}",
          "true", "18446744073709551615"}) {
      Json changed = *parsed;
      auto& object = inside ? changed.get_object()["text_config"].get_object()
                            : changed.get_object();
      object[member.key()] = *ParseJson(value, "value");
      const auto sheet = Parse(WriteJson(changed));
      if (!sheet.ok()) {
        ++refused;
        EXPECT_EQ(KindOf(sheet.status()), ErrorKind::kInput);
        EXPECT_THAT(std::string(sheet.status().message()),
                    HasSubstr(std::string(member.key())));
        EXPECT_EQ(ObjectOf(sheet.status()), "config.json");
        EXPECT_FALSE(HintOf(sheet.status()).empty());
      }
    }
  }
  EXPECT_GT(refused, 50);
}

INSTANTIATE_TEST_SUITE_P(Models, HostileConfigs,
                         ::testing::Values("deepseek-v3", "gemma-3-1b",
                                           "gemma-4-26b-a4b", "gpt-oss-20b",
                                           "kimi-k3", "kimi-linear-48b-a3b",
                                           "lfm2-8b-a1b", "qwen3-next-80b-a3b"),
                         [](const auto& info) {
                           return absl::StrCat("case", info.index);
                         });

TEST(ConfigSheet, MissingKeysAreNamed) {
  for (const char* name :
       {"deepseek-v3", "gpt-oss-20b", "kimi-k3", "qwen3-next-80b-a3b",
        "gemma-4-31b", "lfm2-8b-a1b"}) {
    for (const char* key : {"hidden_size", "num_hidden_layers",
                            "num_attention_heads", "vocab_size"}) {
      Json changed = *ParseJson(TextOf(name), "config.json");
      auto& all = changed.get_object();
      (all.contains("text_config") ? all["text_config"].get_object() : all)
          .erase(key);
      const auto sheet = Parse(WriteJson(changed));
      ASSERT_FALSE(sheet.ok()) << name << " without " << key;
      EXPECT_THAT(std::string(sheet.status().message()),
                  HasSubstr(absl::StrCat(key, ": is missing")));
    }
  }
}

// Sizes that are each possible, but together more than any memory.
TEST(ConfigSheet, AbsurdTogether) {
  Json changed = *ParseJson(TextOf("kimi-k3"), "config.json");
  auto& text = changed.get_object()["text_config"].get_object();
  text["hidden_size"] = int64_t{1} << 20;
  text["moe_intermediate_size"] = int64_t{1} << 22;
  text["routed_expert_hidden_size"] = int64_t{1} << 20;
  text["num_experts"] = int64_t{1} << 14;
  const auto sheet = Parse(WriteJson(changed));
  ASSERT_FALSE(sheet.ok());
  EXPECT_THAT(std::string(sheet.status().message()),
              HasSubstr("larger than any machine's memory"));
}

TEST(ConfigSheet, LayerListsMustShareOutTheLayers) {
  Json changed = *ParseJson(TextOf("kimi-k3"), "config.json");
  auto& lists = changed.get_object()["text_config"]
                    .get_object()["linear_attn_config"]
                    .get_object();
  lists["kda_layers"].get_array().pop_back();
  auto sheet = Parse(WriteJson(changed));
  ASSERT_FALSE(sheet.ok());
  EXPECT_THAT(std::string(sheet.status().message()), HasSubstr("kda_layers"));
  lists["kda_layers"].get_array().push_back(94);
  sheet = Parse(WriteJson(changed));
  ASSERT_FALSE(sheet.ok());
  EXPECT_THAT(std::string(sheet.status().message()),
              HasSubstr("numbers from 1 to 93"));
}

}  // namespace
}  // namespace millrace::planner
