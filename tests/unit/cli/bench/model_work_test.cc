// Operations of a model add up to what the planner counts, by what bounds
// them; provoked on dense models, models of experts, and mixed formats.
#include "cli/bench/model_work.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/spec_from_config.h"
#include "model/spec/model_costs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::cli {
namespace {

using kernels::ComputeMode;
using kernels::Peak;
using ::millrace::testing::TempDir;
using ::millrace::testing::TinyConfigJson;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;
using ::testing::DoubleNear;

model::ModelSpec SpecOf(TinyFamily family) {
  TinyModel tiny;
  tiny.family = family;
  TempDir dir;
  const auto spec =
      model::SpecFromConfig(dir.Write("config.json", TinyConfigJson(tiny)));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : model::ModelSpec();
}

double At(const Work& work, Peak peak) {
  return work.operations[static_cast<size_t>(peak)];
}

TEST(ModelWorkTest, ProductsAreThoseOfTheModelsCosts) {
  for (const TinyFamily family : {TinyFamily::kLlama, TinyFamily::kQwen3Moe}) {
    const model::ModelSpec spec = SpecOf(family);
    Work work = LayerWork(spec, ComputeMode::kFast);
    work += HeadWork(spec, ComputeMode::kFast);
    const double expected = model::CostsOf(spec).operations_per_token;
    EXPECT_GT(expected, 0);
    EXPECT_THAT(work.total(), DoubleNear(expected, expected * 1e-12));
    EXPECT_EQ(HasExperts(spec), family == TinyFamily::kQwen3Moe);
  }
}

TEST(ModelWorkTest, FormatsAndModesDecideWhatBounds) {
  model::ModelSpec spec = SpecOf(TinyFamily::kQwen3Moe);
  spec.head.format = kernels::WeightFormat::kQ8_0;
  const Work head = HeadWork(spec, ComputeMode::kFast);
  EXPECT_EQ(At(head, Peak::kByteDot), head.total());
  const Work exact = HeadWork(spec, ComputeMode::kExact);
  EXPECT_EQ(At(exact, Peak::kFma), exact.total());
  EXPECT_EQ(exact.total(), head.total());
  // Routers are exact in both modes, whatever the format.
  for (model::LayerSpec& layer : spec.layers) {
    for (model::Operation& operation : layer.operations) {
      if (auto* moe = std::get_if<model::MoeFfnOp>(&operation)) {
        moe->router.format = kernels::WeightFormat::kQ8_0;
      }
    }
  }
  EXPECT_EQ(At(LayerWork(spec, ComputeMode::kFast), Peak::kByteDot), 0);
}

TEST(ModelWorkTest, APromptIsItsRowsAndOneHead) {
  const model::ModelSpec spec = SpecOf(TinyFamily::kLlama);
  const double layers = LayerWork(spec, ComputeMode::kFast).total();
  const double head = HeadWork(spec, ComputeMode::kFast).total();
  const double keys = AttentionWork(spec, 1).total();
  EXPECT_THAT(PrefillWork(spec, ComputeMode::kFast, 4).total(),
              DoubleNear(4 * layers + head + (1 + 2 + 3 + 4) * keys, 1));
  EXPECT_THAT(DecodeWork(spec, ComputeMode::kFast, 10).total(),
              DoubleNear(layers + head + 10 * keys, 1));
}

TEST(ModelWorkTest, TheCeilingWeighsPeaksByTheirWork) {
  MachineRates rates;
  rates.peaks[static_cast<size_t>(Peak::kFma)] = 10;
  rates.peaks[static_cast<size_t>(Peak::kByteDot)] = 40;
  Work work;
  work.operations[static_cast<size_t>(Peak::kFma)] = 100;
  work.operations[static_cast<size_t>(Peak::kByteDot)] = 400;
  EXPECT_EQ(CeilingOf(work, rates), 500.0 / 20);
  rates.peaks[static_cast<size_t>(Peak::kByteDot)].reset();
  EXPECT_EQ(CeilingOf(work, rates), std::nullopt);
  EXPECT_EQ(CeilingOf(Work(), rates), std::nullopt);
}

}  // namespace
}  // namespace millrace::cli
