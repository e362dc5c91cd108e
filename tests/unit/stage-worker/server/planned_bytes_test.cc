// What a plan says that a stage needs is what the stage allocates; provoked
// with checkpoints of every family that runs, cut everywhere, whole and at
// either end, and with every type of keys and values.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "planner/spec_costs.h"
#include "planner/stage_scratch.h"
#include "stage-worker/runtime/stage_runner.h"
#include "stage-worker/server/stage_factory.h"

namespace millrace::worker {
namespace {

const std::string kModels = std::string(MILLRACE_TEST_DATA_DIR) + "/golden";

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    if (entry.is_directory()) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

constexpr int64_t kContext = 200;
constexpr int64_t kSequences = 3;

control::Load LoadOf(const std::string& name, const model::ModelSpec& spec,
                     const planner::LayerRun& run, control::KvType kv) {
  control::Load load;
  load.load_key = "key";
  load.model = name;
  load.model_digest = spec.digest;
  load.stage.first_layer = run.begin;
  load.stage.last_layer = run.end - 1;
  load.stage.holds_embedding = run.begin == 0;
  load.stage.holds_head = run.end == static_cast<int64_t>(spec.layers.size());
  load.stage.context = kContext;
  load.stage.sequences = kSequences;
  load.stage.slots = 8;
  load.stage.rows_max = 16;
  load.stage.prefill_chunk = 8;
  load.stage.num_threads = 1;
  load.stage.kv_type = kv;
  return load;
}

int64_t WeightsOf(const planner::ModelCosts& costs,
                  const planner::LayerRun& run) {
  const bool first = run.begin == 0;
  const bool last = run.end == static_cast<int64_t>(costs.layers.size());
  int64_t bytes = (first ? costs.first.weights_bytes : 0) +
                  (last ? costs.last.weights_bytes : 0) -
                  (first && last ? costs.shared_weights_bytes : 0);
  for (int64_t i = run.begin; i < run.end; ++i) {
    bytes += costs.layers[static_cast<size_t>(i)].weights_bytes;
  }
  return bytes;
}

int64_t KvOf(const planner::ModelCosts& costs, const planner::LayerRun& run) {
  int64_t bytes = 0;
  for (int64_t i = run.begin; i < run.end; ++i) {
    const planner::LayerCost& layer = costs.layers[static_cast<size_t>(i)];
    const int64_t block = costs.kv_block_positions;
    int64_t positions = (kContext + block - 1) / block * block;
    if (layer.kv_positions_max > 0) {
      positions = std::min(positions, layer.kv_positions_max);
    }
    bytes += kSequences *
             (positions * layer.kv_per_token + layer.state_per_sequence);
  }
  return bytes;
}

struct KvCase {
  control::KvType wanted;
  model::KvFormat format;
};
constexpr KvCase kKvCases[] = {{control::KvType::kF32, model::kKvF32},
                               {control::KvType::kF16, model::kKv16Bit},
                               {control::KvType::kInt8, model::kKvInt8}};

class PlannedBytes : public ::testing::TestWithParam<std::string> {
 protected:
  void ExpectEqual(const model::ModelSpec& spec, const planner::LayerRun& run,
                   const KvCase& kv) const {
    const control::Load load = LoadOf(GetParam(), spec, run, kv.wanted);
    const auto stage =
        MakeCheckpointStageFactory({.models_dir = kModels,
                                    .memory_bytes = 0,
                                    .num_threads = 1,
                                    .kernels = &kernels_})
            ->Create(
                load, [](const LoadProgress&) {}, [] { return false; });
    ASSERT_TRUE(stage.ok()) << stage.status();
    const planner::ModelCosts costs =
        planner::CostsOfSpec(spec, {kv.format, load.stage.prefill_chunk});
    EXPECT_EQ((*stage)->memory().weights_bytes, WeightsOf(costs, run));
    EXPECT_EQ((*stage)->memory().kv_bytes, KvOf(costs, run));
    model::StageShape shape;
    shape.kv = kv.format;
    shape.context = kContext;
    shape.slots = load.stage.slots;
    shape.rows_max = load.stage.rows_max;
    shape.prefill_chunk = load.stage.prefill_chunk;
    const planner::LayerRun runs[] = {run};
    EXPECT_EQ((*stage)->memory().scratch_bytes,
              planner::ScratchOf(spec, shape, {})(runs));
  }

  const kernels::KernelTable kernels_ =
      kernels::BuildKernelTable(kernels::Isa::kScalar);
};

TEST_P(PlannedBytes, AreWhatStagesAllocate) {
  const auto checkpoint =
      model::Checkpoint::Open(kModels + "/" + GetParam()).value();
  const model::ModelSpec& spec = checkpoint->spec();
  const auto layers = static_cast<int64_t>(spec.layers.size());
  for (const KvCase& kv : kKvCases) {
    ExpectEqual(spec, {0, layers}, kv);
  }
  for (int64_t cut = 1; cut < layers; ++cut) {
    ExpectEqual(spec, {0, cut}, kKvCases[1]);
    ExpectEqual(spec, {cut, layers}, kKvCases[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PlannedBytes,
                         ::testing::ValuesIn(ModelNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace millrace::worker
