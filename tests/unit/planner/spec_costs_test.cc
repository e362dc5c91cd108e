// Summed over a stage, the costs of a model are the bytes that its worker
// allocates; provoked with every cut of models of each family the engine runs,
// contexts on both sides of a window and of a block, tied heads and experts.
#include "planner/spec_costs.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "model/checkpoint/spec_from_config.h"
#include "model/spec/model_costs.h"
#include "model/spec/stage_memory.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::planner {
namespace {

using ::millrace::testing::TempDir;
using ::millrace::testing::TinyConfigJson;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;

model::ModelSpec SpecOf(const TinyModel& model) {
  TempDir dir;
  const auto spec =
      model::SpecFromConfig(dir.Write("config.json", TinyConfigJson(model)));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : model::ModelSpec();
}

int64_t WeightsOf(const ModelCosts& costs, const model::StageShape& shape) {
  int64_t bytes = 0;
  for (int64_t i = shape.first_layer; i <= shape.last_layer; ++i) {
    bytes += costs.layers[static_cast<size_t>(i)].weights_bytes;
  }
  bytes += shape.holds_embedding ? costs.first.weights_bytes : 0;
  bytes += shape.holds_head ? costs.last.weights_bytes : 0;
  return shape.holds_embedding && shape.holds_head
             ? bytes - costs.shared_weights_bytes
             : bytes;
}

int64_t KvOf(const ModelCosts& costs, const model::StageShape& shape) {
  int64_t bytes = 0;
  for (int64_t i = shape.first_layer; i <= shape.last_layer; ++i) {
    const LayerCost& layer = costs.layers[static_cast<size_t>(i)];
    const int64_t block = costs.kv_block_positions;
    int64_t positions = (shape.context + block - 1) / block * block;
    if (layer.kv_positions_max > 0) {
      positions = std::min(positions, layer.kv_positions_max);
    }
    bytes += shape.sequences *
             (positions * layer.kv_per_token + layer.state_per_sequence);
  }
  return bytes;
}

void ExpectStagesEqual(const model::ModelSpec& spec,
                       const model::KvFormat& kv) {
  model::StageShape shape;
  shape.kv = kv;
  shape.sequences = 3;
  shape.rows_max = 8;
  shape.prefill_chunk = 5;
  const ModelCosts costs = CostsOfSpec(spec, {kv, shape.prefill_chunk});
  const auto layers = static_cast<int64_t>(spec.layers.size());
  ASSERT_EQ(static_cast<int64_t>(costs.layers.size()), layers);
  for (int64_t first = 0; first < layers; ++first) {
    for (int64_t last = first; last < layers; ++last) {
      for (const int64_t context : {1, 11, 12, 13, 63, 64, 65, 128, 1000}) {
        shape.first_layer = first;
        shape.last_layer = last;
        shape.holds_embedding = first == 0;
        shape.holds_head = last == layers - 1;
        shape.context = context;
        EXPECT_EQ(WeightsOf(costs, shape),
                  model::StageWeightsBytes(spec, shape));
        EXPECT_EQ(KvOf(costs, shape), model::StageKvBytes(spec, shape))
            << first << " to " << last << " at " << context;
      }
    }
  }
}

class EveryFamily : public ::testing::TestWithParam<TinyFamily> {};

TEST_P(EveryFamily, StagesWeighWhatTheyAllocate) {
  TinyModel model;
  model.family = GetParam();
  for (const bool tied : {false, true}) {
    model.tied = tied;
    const model::ModelSpec spec = SpecOf(model);
    for (const model::KvFormat& kv :
         {model::kKvF32, model::kKv16Bit, model::kKvInt8}) {
      ExpectStagesEqual(spec, kv);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, EveryFamily,
    ::testing::ValuesIn(::millrace::testing::kTinyFamilies),
    [](const auto& info) {
      return ::millrace::testing::TinyFamilyName(info.param);
    });

TEST(SpecCosts, WorkOfOneToken) {
  TinyModel model;
  model.family = TinyFamily::kQwen3Moe;
  const model::ModelSpec spec = SpecOf(model);
  const ModelCosts costs = CostsOfSpec(spec, {model::kKv16Bit, 1});
  const model::PartCosts layer = model::CostsOf(spec.layers[0]);
  EXPECT_EQ(costs.layers[0].bytes_per_token,
            static_cast<double>(layer.read_bytes_per_token));
  EXPECT_EQ(costs.layers[0].flops_per_token, layer.operations_per_token);
  // Eight experts of 3 x 64 x 64 in bf16, two of them for a token.
  EXPECT_EQ(costs.layers[0].experts.count, 8);
  EXPECT_EQ(costs.layers[0].experts.used, 2);
  EXPECT_EQ(costs.layers[0].experts.bytes_each, 2.0 * 3 * 64 * 64);
  EXPECT_EQ(costs.layers[0].format, "bf16");
  EXPECT_EQ(costs.hidden_bytes, 4 * 64);
  EXPECT_EQ(costs.first.bytes_per_token, 0);
  EXPECT_GT(costs.last.bytes_per_token, 2.0 * 320 * 64);
}

}  // namespace
}  // namespace millrace::planner
