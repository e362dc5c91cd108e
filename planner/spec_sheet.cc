#include "planner/spec_sheet.h"

#include <optional>
#include <variant>

#include "model/spec/matrix_bytes.h"
#include "model/spec/model_costs.h"
#include "model/spec/stage_memory.h"

namespace millrace::planner {
namespace {

class LayerSheetMaker {
 public:
  explicit LayerSheetMaker(LayerSheet& out) : out_(out) {}

  void operator()(const model::AttentionOp& op) const {
    Add(op.norm.weight);
    for (const auto* linear : {&op.q, &op.k, &op.v, &op.o}) {
      Add(*linear);
    }
    for (const auto* norm : {&op.q_norm, &op.k_norm}) {
      if (norm->has_value()) {
        Add((*norm)->weight);
      }
    }
    out_.kv.push_back({2 * op.num_kv_heads, op.head_dim});
    out_.window = op.window;
  }
  void operator()(const model::DenseFfnOp& op) const {
    Add(op.norm.weight);
    for (const auto* linear : {&op.gate, &op.up, &op.down}) {
      Add(*linear);
    }
  }
  void operator()(const model::MoeFfnOp& op) const {
    Add(op.norm.weight);
    SheetMatrix router = SheetOf(op.router);
    router.may_requantise = false;
    out_.weights.matrices.push_back(router);
    out_.experts = static_cast<int64_t>(op.experts.size());
    out_.experts_used = op.experts_per_token;
    int64_t most = -1;
    for (const model::ExpertSpec& expert : op.experts) {
      const PartSheet part = {
          {SheetOf(expert.gate), SheetOf(expert.up), SheetOf(expert.down)}, {}};
      const int64_t bytes = TotalsOf(part).weights_bytes;
      if (bytes > most) {
        most = bytes;
        out_.expert = part;
      }
    }
  }

  static SheetMatrix SheetOf(const model::Matrix& matrix) {
    return {matrix.format, matrix.rows, matrix.cols,
            model::CheckpointBytes(matrix), true};
  }
  static SheetVector SheetOf(const model::Vector& vector) {
    return {vector.size, vector.source.bytes};
  }

 private:
  void Add(const model::Vector& vector) const {
    out_.weights.vectors.push_back(SheetOf(vector));
  }
  void Add(const model::LinearSpec& linear) const {
    out_.weights.matrices.push_back(SheetOf(linear.weight));
    if (linear.bias.has_value()) {
      Add(*linear.bias);
    }
  }

  LayerSheet& out_;
};

}  // namespace

ModelSheet SheetOfSpec(const model::ModelSpec& spec) {
  ModelSheet out;
  out.name = spec.name;
  out.family = spec.family;
  out.digest = spec.digest;
  out.hidden_size = spec.hidden_size;
  out.vocab_size = spec.vocab_size;
  out.context_length = spec.context_length;
  for (const model::LayerSpec& layer : spec.layers) {
    LayerSheet& sheet = out.layers.emplace_back();
    sheet.kind = model::KindOf(layer);
    const LayerSheetMaker maker(sheet);
    for (const model::Operation& operation : layer.operations) {
      std::visit(maker, operation);
    }
  }
  out.first.matrices.push_back(LayerSheetMaker::SheetOf(spec.embedding));
  out.last.matrices.push_back(LayerSheetMaker::SheetOf(spec.head));
  out.last.vectors.push_back(LayerSheetMaker::SheetOf(spec.final_norm.weight));
  out.head_is_embedding = spec.head_is_embedding;
  return out;
}

}  // namespace millrace::planner
