// One machine that streams experts: floor, cache, hits and speed follow from
// the model's shapes and the machine's numbers; provoked with published models,
// budgets around the floor, and machines of which little is known.
#include "planner/single_node.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/spec_from_config.h"
#include "planner/families/config_sheet.h"
#include "planner/spec_sheet.h"

namespace millrace::planner {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return absl::StrCat(MILLRACE_TEST_DATA_DIR, "/configs/", name, ".json");
}

ModelSheet SheetOf(const std::string& name) {
  const auto text = ReadFile(PathOf(name), int64_t{1} << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto json = ParseJson(text.value_or("{}"), name);
  EXPECT_TRUE(json.ok()) << json.status();
  const auto object = JsonObject::From(*json, name);
  EXPECT_TRUE(object.ok()) << object.status();
  const auto sheet = ReadConfigSheet(*object, name);
  EXPECT_TRUE(sheet.ok()) << sheet.status();
  return sheet.ok() ? *sheet : ModelSheet();
}

ModelSheet RunnableSheet(const std::string& name) {
  const auto spec = model::SpecFromConfig(PathOf(name));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? SheetOfSpec(*spec) : ModelSheet();
}

// Kimi K3 as it is streamed: experts of 3 bits, the rest of 4.
SingleNodeOptions KimiOptions() {
  SingleNodeOptions options;
  options.memory_bytes = 64'000'000'000;
  options.context = 4096;
  options.shape = {model::kKv16Bit, 256};
  options.experts = StoredAs::kVq3;
  options.trunk = StoredAs::kQ4_0;
  options.scratch_bytes = 300'000'000;
  options.nvme_bandwidth = 12.8e9;
  return options;
}

SingleNodePlan PlanOf(const ModelSheet& sheet,
                      const SingleNodeOptions& options) {
  const auto plan = PlanSingleNode(sheet, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : SingleNodePlan();
}

TEST(SingleNode, KimiK3InThreeAndFourBits) {
  const SingleNodePlan plan = PlanOf(SheetOf("kimi-k3"), KimiOptions());
  EXPECT_TRUE(plan.fits);
  // 32.8 GB: 56.7 G parameters at 4.5 bits, routers in BF16.
  EXPECT_EQ(plan.floor.trunk_bytes, 32'824'422'784);
  EXPECT_EQ(plan.floor.state_bytes, 69 * ((int64_t{6} << 20) + 3 * 36'864 * 4));
  EXPECT_EQ(plan.floor.kv_bytes, 4096 * 27'648);
  // 12.4 MB: 33 M weights of 3 bits and a half-precision scale for each row.
  EXPECT_EQ(plan.record_bytes, 12'406'784);
  EXPECT_EQ(plan.records, 92 * 896);
  EXPECT_EQ(plan.records_per_token, 1472);
  EXPECT_EQ(plan.cold_bytes_per_token, 1472 * plan.record_bytes);
  EXPECT_EQ(plan.cold_bytes_per_token / 100'000'000, 182);  // 18.3 GB
  EXPECT_EQ(plan.floor.working_set_bytes, 16 * plan.record_bytes);
  EXPECT_EQ(plan.floor.read_buffer_bytes, 8 * plan.record_bytes);
  EXPECT_EQ(plan.floor.total() / 100'000'000, 340);  // 34 GB
  // What is left, and the working set, is cache.
  EXPECT_EQ(plan.cache_records,
            (64'000'000'000 - plan.floor.total() + 16 * plan.record_bytes) /
                plan.record_bytes);
  EXPECT_EQ(plan.cache_records, 2434);
}

TEST(SingleNode, KimiK3AsPublished) {
  SingleNodeOptions options = KimiOptions();
  options.experts = StoredAs::kKeep;
  options.trunk = StoredAs::kKeep;
  options.memory_bytes = 128'000'000'000;
  const SingleNodePlan plan = PlanOf(SheetOf("kimi-k3"), options);
  EXPECT_TRUE(plan.fits);
  // MXFP4, a header, whole blocks of 4 KiB.
  EXPECT_EQ(plan.record_bytes, 17'551'360);
  EXPECT_EQ(plan.cold_bytes_per_token / 10'000'000, 2583);  // 25.8 GB
  EXPECT_EQ(plan.floor.trunk_bytes / 100'000'000, 1135);    // 113.5 GB
  // 1.56 TB on disk.
  EXPECT_EQ(plan.bundle_bytes / 10'000'000'000, 156);
}

TEST(SingleNode, BudgetAroundTheFloor) {
  const ModelSheet sheet = SheetOf("kimi-k3");
  SingleNodeOptions options = KimiOptions();
  const int64_t floor = PlanOf(sheet, options).floor.total();
  options.memory_bytes = floor;
  SingleNodePlan plan = PlanOf(sheet, options);
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.cache_records, 16);
  options.memory_bytes = floor - 1;
  plan = PlanOf(sheet, options);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.floor.total(), floor);
  EXPECT_EQ(plan.cache_records, 0);
  EXPECT_THAT(plan.verdict, HasSubstr(absl::StrCat("(", floor, " bytes)")));
  // The smallest changes first; one that is not enough is not proposed.
  ASSERT_EQ(plan.advice.size(), 3U);
  EXPECT_EQ(plan.advice[0].change, "--kv int8");
  EXPECT_EQ(plan.advice[1].change, "--context 4032");
  EXPECT_EQ(plan.advice[2].change, absl::StrCat("--memory ", floor));
  options.memory_bytes = floor / 2;
  plan = PlanOf(sheet, options);
  ASSERT_EQ(plan.advice.size(), 1U);
  EXPECT_EQ(plan.advice[0].change, absl::StrCat("--memory ", floor));
}

// What is proposed does fit.
TEST(SingleNode, AdviceFits) {
  const ModelSheet sheet = SheetOf("kimi-linear-48b-a3b");
  SingleNodeOptions options = KimiOptions();
  options.experts = StoredAs::kKeep;
  options.trunk = StoredAs::kKeep;
  options.context = 1 << 20;
  options.sequences = 2;
  options.memory_bytes = 10'000'000'000;
  const SingleNodePlan plan = PlanOf(sheet, options);
  ASSERT_FALSE(plan.fits);
  int tried = 0;
  for (const Advice& advice : plan.advice) {
    SingleNodeOptions changed = options;
    int64_t context = 0;
    if (absl::StartsWith(advice.change, "--context ") &&
        absl::SimpleAtoi(advice.change.substr(10), &context)) {
      changed.context = context;
      EXPECT_TRUE(PlanOf(sheet, changed).fits);
      changed.context += 64;
      EXPECT_FALSE(PlanOf(sheet, changed).fits);
      ++tried;
    }
  }
  EXPECT_EQ(tried, 1);
}

TEST(SingleNode, HitsAndBytes) {
  const ModelSheet sheet = SheetOf("kimi-k3");
  SingleNodeOptions options = KimiOptions();
  const SingleNodePlan plan = PlanOf(sheet, options);
  const double share = 2434.0 / (92 * 896);
  EXPECT_DOUBLE_EQ(plan.hit_rate.low, share);
  EXPECT_DOUBLE_EQ(plan.hit_rate.high, MeasuredHitRate(share));
  const auto cold = static_cast<double>(plan.cold_bytes_per_token);
  EXPECT_DOUBLE_EQ(plan.bytes_per_token.high, cold * (1 - share));
  EXPECT_DOUBLE_EQ(plan.bytes_per_token.low, cold * (1 - plan.hit_rate.high));
  // All experts in memory: nothing is read.
  options.memory_bytes = 2'000'000'000'000;
  const SingleNodePlan whole = PlanOf(sheet, options);
  EXPECT_EQ(whole.cache_records, whole.records);
  EXPECT_EQ(whole.hit_rate.low, 1);
  EXPECT_EQ(whole.bytes_per_token.high, 0);
}

TEST(SingleNode, MeasuredHits) {
  EXPECT_EQ(MeasuredHitRate(0), 0);
  EXPECT_DOUBLE_EQ(MeasuredHitRate(1597 / 6656.0), 0.73);
  EXPECT_EQ(MeasuredHitRate(1), 1);
  for (double share = 0; share < 1; share += 0.01) {
    EXPECT_LE(MeasuredHitRate(share), MeasuredHitRate(share + 0.01));
    EXPECT_GE(MeasuredHitRate(share), share);
  }
}

TEST(SingleNode, Speed) {
  const ModelSheet sheet = SheetOf("kimi-k3");
  SingleNodeOptions options = KimiOptions();
  SingleNodePlan plan = PlanOf(sheet, options);
  // Memory's bandwidth unknown: as far as reading allows.
  ASSERT_TRUE(plan.tokens_per_s.has_value());
  EXPECT_DOUBLE_EQ(plan.tokens_per_s->high, 12.8e9 / plan.bytes_per_token.low);
  EXPECT_DOUBLE_EQ(plan.tokens_per_s->low, 12.8e9 / plan.bytes_per_token.high);
  EXPECT_THAT(plan.verdict, HasSubstr("as far as reading allows"));
  options.memory_bandwidth = 50e9;
  plan = PlanOf(sheet, options);
  const double memory_s = plan.memory_bytes_per_token / 50e9;
  EXPECT_DOUBLE_EQ(plan.tokens_per_s->low,
                   1 / (plan.bytes_per_token.high / 12.8e9 + memory_s));
  EXPECT_DOUBLE_EQ(plan.tokens_per_s->high,
                   1 / std::max(plan.bytes_per_token.low / 12.8e9, memory_s));
  options.nvme_bandwidth.reset();
  EXPECT_FALSE(PlanOf(sheet, options).tokens_per_s.has_value());
  // Nothing to read: memory alone.
  options.memory_bytes = 2'000'000'000'000;
  plan = PlanOf(sheet, options);
  EXPECT_DOUBLE_EQ(plan.tokens_per_s->low, 1 / memory_s);
  EXPECT_DOUBLE_EQ(plan.tokens_per_s->high, 1 / memory_s);
}

// A model without routed experts has nothing to stream.
TEST(SingleNode, DenseModels) {
  const ModelSheet sheet = RunnableSheet("llama-3.1-405b");
  SingleNodeOptions options = KimiOptions();
  options.experts = StoredAs::kKeep;
  options.trunk = StoredAs::kKeep;
  options.memory_bytes = 900'000'000'000;
  SingleNodePlan plan = PlanOf(sheet, options);
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.records, 0);
  EXPECT_EQ(plan.cache_records, 0);
  EXPECT_EQ(plan.floor.trunk_bytes,
            TotalsOf(sheet, model::kKv16Bit).weights_bytes);
  EXPECT_FALSE(plan.tokens_per_s.has_value());
  options.trunk = StoredAs::kQ4_0;
  plan = PlanOf(sheet, options);
  EXPECT_NEAR(static_cast<double>(plan.floor.trunk_bytes), 405.853e9 * 4.5 / 8,
              0.1e9);
}

// Routers keep their format, a tied head counts once, and windows end KV.
TEST(SingleNode, WhatStaysAsItIs) {
  const ModelSheet qwen = RunnableSheet("qwen3-30b-a3b");
  const PartSheet q4 = Requantised(qwen.layers[0].weights, StoredAs::kQ4_0);
  EXPECT_EQ(q4.matrices[0].format, kernels::WeightFormat::kQ4_0);
  EXPECT_EQ(q4.matrices.back().format, kernels::WeightFormat::kBf16);
  const ModelSheet gemma = SheetOf("gemma-3-1b");
  SingleNodeOptions options = KimiOptions();
  options.experts = StoredAs::kKeep;
  options.trunk = StoredAs::kKeep;
  options.context = 32768;
  const SingleNodePlan plan = PlanOf(gemma, options);
  EXPECT_EQ(plan.floor.trunk_bytes,
            TotalsOf(gemma, model::kKv16Bit).weights_bytes);
  EXPECT_EQ(plan.floor.kv_bytes, 1024 * (4 * 32768 + 22 * (512 + 256 + 64)));
}

TEST(SingleNode, ImpossibleSums) {
  const ModelSheet sheet = SheetOf("kimi-k3");
  SingleNodeOptions options = KimiOptions();
  options.context = 1 << 20;
  options.sequences = int64_t{1} << 30;
  const auto plan = PlanSingleNode(sheet, options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(KindOf(plan.status()), ErrorKind::kUsage);
  ModelSheet odd = sheet;
  odd.layers[5].expert.matrices[0].cols = 3581;
  const auto refused = PlanSingleNode(odd, KimiOptions());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ObjectOf(refused.status()), "layer 5");
}

}  // namespace
}  // namespace millrace::planner
