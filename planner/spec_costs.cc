#include "planner/spec_costs.h"

#include <algorithm>
#include <map>
#include <variant>

#include "kernels/quant/weight_format.h"
#include "model/spec/model_costs.h"
#include "model/spec/stage_memory.h"

namespace millrace::planner {
namespace {

int64_t ExpertBytes(const model::ExpertSpec& expert) {
  return model::MatrixTileBytes(expert.gate) +
         model::MatrixTileBytes(expert.up) +
         model::MatrixTileBytes(expert.down);
}

// Multiplied elements of one token, by the format of the weights.
struct FormatTally {
  std::map<kernels::WeightFormat, double> elements;

  void Add(const model::Matrix& matrix, double share) {
    elements[matrix.format] += share * static_cast<double>(matrix.rows) *
                               static_cast<double>(matrix.cols);
  }
  void operator()(const model::AttentionOp& op) {
    for (const auto* linear : {&op.q, &op.k, &op.v, &op.o}) {
      Add(linear->weight, 1);
    }
  }
  void operator()(const model::DenseFfnOp& op) {
    for (const auto* linear : {&op.gate, &op.up, &op.down}) {
      Add(linear->weight, 1);
    }
  }
  void operator()(const model::MoeFfnOp& op) {
    const double share =
        static_cast<double>(op.experts_per_token) /
        static_cast<double>(std::max<size_t>(1, op.experts.size()));
    for (const model::ExpertSpec& expert : op.experts) {
      for (const auto* matrix : {&expert.gate, &expert.up, &expert.down}) {
        Add(*matrix, share);
      }
    }
  }

  [[nodiscard]] const char* Most() const {
    const auto most = std::max_element(
        elements.begin(), elements.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == elements.end() ? "" : kernels::TraitsOf(most->first).name;
  }
};

ExpertCost ExpertsOf(const model::LayerSpec& layer) {
  ExpertCost out;
  for (const model::Operation& operation : layer.operations) {
    const auto* moe = std::get_if<model::MoeFfnOp>(&operation);
    if (moe == nullptr || moe->experts.empty()) {
      continue;
    }
    double bytes = 0;
    for (const model::ExpertSpec& expert : moe->experts) {
      bytes += static_cast<double>(ExpertBytes(expert));
    }
    out.count = static_cast<int64_t>(moe->experts.size());
    out.used = moe->experts_per_token;
    out.bytes_each = bytes / static_cast<double>(out.count);
  }
  return out;
}

LayerCost LayerOf(const model::LayerSpec& layer, const CostsShape& shape) {
  const model::PartCosts costs = model::CostsOf(layer);
  LayerCost out;
  out.kind = model::KindOf(layer);
  out.weights_bytes = model::LayerWeightBytes(layer);
  out.kv_per_token = model::KvBytesPerToken(layer, shape.kv);
  out.kv_positions_max =
      KvPositionsMax(model::WindowOf(layer), shape.prefill_chunk);
  out.flops_per_token = costs.operations_per_token;
  out.bytes_per_token = static_cast<double>(costs.read_bytes_per_token);
  out.experts = ExpertsOf(layer);
  FormatTally formats;
  for (const model::Operation& operation : layer.operations) {
    std::visit([&formats](const auto& op) { formats(op); }, operation);
  }
  out.format = formats.Most();
  return out;
}

}  // namespace

int64_t KvPositionsMax(int64_t window, int64_t prefill_chunk) {
  if (window == 0) {
    return 0;
  }
  // window + chunk - 1 positions in a row may straddle one block more than
  // they fill.
  const int64_t span = window + std::max<int64_t>(prefill_chunk, 1);
  constexpr int64_t kBlock = model::kKvBlockPositions;
  return ((span + kBlock - 1) / kBlock + 1) * kBlock;
}

ModelCosts CostsOfSpec(const model::ModelSpec& spec, const CostsShape& shape) {
  ModelCosts out;
  out.name = spec.name;
  out.digest = spec.digest;
  // Between layers the residual stream is f32.
  out.hidden_bytes = spec.hidden_size * 4;
  for (const model::LayerSpec& layer : spec.layers) {
    out.layers.push_back(LayerOf(layer, shape));
  }
  const model::PartCosts head = model::HeadCosts(spec);
  out.first.weights_bytes = model::EmbeddingWeightBytes(spec);
  out.last.weights_bytes = model::HeadWeightBytes(spec);
  out.last.bytes_per_token = static_cast<double>(head.read_bytes_per_token);
  out.last.flops_per_token = head.operations_per_token;
  out.shared_weights_bytes =
      spec.head_is_embedding ? model::MatrixTileBytes(spec.head) : 0;
  out.kv_block_positions = model::kKvBlockPositions;
  return out;
}

}  // namespace millrace::planner
