#include "tests/unit/planner/planning_model.h"

#include "base/check.h"
#include "planner/planner.h"
#include "planner/spec_costs.h"
#include "planner/stage_scratch.h"

namespace millrace::testing {
namespace {

constexpr int64_t kHidden = 64;

model::Matrix MatrixOf(int64_t rows, int64_t cols) {
  model::Matrix matrix;
  matrix.format = kernels::WeightFormat::kBf16;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.source.bytes = rows * cols * 2;
  return matrix;
}

model::RmsNormSpec Norm() {
  model::RmsNormSpec norm;
  norm.weight.size = kHidden;
  return norm;
}

}  // namespace

model::ModelSpec PlanningModel(const std::vector<int64_t>& widths) {
  model::ModelSpec spec;
  spec.name = "planning";
  spec.digest = "sha256:planning";
  spec.hidden_size = kHidden;
  spec.vocab_size = 512;
  spec.context_length = 4096;
  spec.embedding = MatrixOf(512, kHidden);
  spec.head = MatrixOf(512, kHidden);
  spec.final_norm = Norm();
  for (const int64_t width : widths) {
    model::AttentionOp attention;
    attention.norm = Norm();
    attention.num_heads = 4;
    attention.num_kv_heads = 2;
    attention.head_dim = 16;
    attention.q.weight = MatrixOf(64, kHidden);
    attention.k.weight = MatrixOf(32, kHidden);
    attention.v.weight = MatrixOf(32, kHidden);
    attention.o.weight = MatrixOf(kHidden, 64);
    model::DenseFfnOp ffn;
    ffn.norm = Norm();
    ffn.intermediate_size = width;
    ffn.gate.weight = MatrixOf(width, kHidden);
    ffn.up.weight = MatrixOf(width, kHidden);
    ffn.down.weight = MatrixOf(kHidden, width);
    spec.layers.push_back({{attention, ffn}});
  }
  return spec;
}

model::StageShape SmallShape(int64_t context) {
  model::StageShape shape;
  shape.context = context;
  shape.rows_max = 4;
  shape.prefill_chunk = 2;
  shape.kv = model::kKv16Bit;
  return shape;
}

planner::PlanOptions OptionsFor(int64_t context) {
  planner::PlanOptions options;
  options.contexts = {context};
  return options;
}

planner::Plan PlanOf(const model::ModelSpec& spec,
                     const planner::Cluster& cluster,
                     const planner::PlanOptions& options, model::KvFormat kv) {
  model::StageShape shape = SmallShape(options.contexts[0]);
  shape.kv = kv;
  const planner::ModelCosts costs =
      planner::CostsOfSpec(spec, {shape.kv, shape.prefill_chunk});
  const absl::StatusOr<planner::Plan> plan = planner::MakePlan(
      {&costs, &cluster, &options,
       planner::ScratchOf(spec, shape, {.program = kSmallProcessBytes}), true});
  MILLRACE_CHECK(plan.ok());
  return *plan;
}

}  // namespace millrace::testing
