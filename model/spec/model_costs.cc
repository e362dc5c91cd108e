#include "model/spec/model_costs.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "model/spec/matrix_bytes.h"
#include "model/spec/stage_memory.h"

namespace millrace::model {
namespace {

constexpr int64_t kF32Bytes = 4;

void AddMatrix(const Matrix& matrix, PartCosts& costs) {
  const int64_t tiles = MatrixTileBytes(matrix);
  costs.parameters += matrix.rows * matrix.cols;
  costs.stored_bytes += CheckpointBytes(matrix);
  costs.tile_bytes += tiles;
  costs.read_bytes_per_token += tiles;
  costs.operations_per_token +=
      2.0 * static_cast<double>(matrix.rows) * static_cast<double>(matrix.cols);
}

void AddVector(const Vector& vector, PartCosts& costs) {
  costs.parameters += vector.size;
  costs.stored_bytes += vector.source.bytes;
  costs.vector_bytes += vector.size * kF32Bytes;
  costs.read_bytes_per_token += vector.size * kF32Bytes;
}

void AddLinear(const LinearSpec& linear, PartCosts& costs) {
  AddMatrix(linear.weight, costs);
  if (linear.bias.has_value()) {
    AddVector(*linear.bias, costs);
  }
}

void Add(const AttentionOp& op, PartCosts& costs) {
  AddVector(op.norm.weight, costs);
  for (const LinearSpec* linear : {&op.q, &op.k, &op.v, &op.o}) {
    AddLinear(*linear, costs);
  }
  for (const auto* norm : {&op.q_norm, &op.k_norm}) {
    if (norm->has_value()) {
      AddVector((*norm)->weight, costs);
    }
  }
}

void Add(const DenseFfnOp& op, PartCosts& costs) {
  AddVector(op.norm.weight, costs);
  for (const LinearSpec* linear : {&op.gate, &op.up, &op.down}) {
    AddLinear(*linear, costs);
  }
}

void Add(const MoeFfnOp& op, PartCosts& costs) {
  AddVector(op.norm.weight, costs);
  AddMatrix(op.router, costs);
  PartCosts experts;
  for (const ExpertSpec& expert : op.experts) {
    AddMatrix(expert.gate, experts);
    AddMatrix(expert.up, experts);
    AddMatrix(expert.down, experts);
  }
  const int64_t num_experts = static_cast<int64_t>(op.experts.size());
  if (num_experts > 0) {
    // Experts of a layer need not have one format: their mean.
    const double share = static_cast<double>(op.experts_per_token) /
                         static_cast<double>(num_experts);
    experts.operations_per_token *= share;
    experts.read_bytes_per_token = static_cast<int64_t>(
        share * static_cast<double>(experts.read_bytes_per_token));
  }
  costs += experts;
}

const AttentionOp* AttentionOf(const LayerSpec& layer) {
  for (const Operation& operation : layer.operations) {
    if (const auto* op = std::get_if<AttentionOp>(&operation)) {
      return op;
    }
  }
  return nullptr;
}

bool HasExperts(const LayerSpec& layer) {
  return std::any_of(
      layer.operations.begin(), layer.operations.end(),
      [](const Operation& op) { return std::holds_alternative<MoeFfnOp>(op); });
}

}  // namespace

PartCosts& PartCosts::operator+=(const PartCosts& other) {
  parameters += other.parameters;
  stored_bytes += other.stored_bytes;
  tile_bytes += other.tile_bytes;
  vector_bytes += other.vector_bytes;
  read_bytes_per_token += other.read_bytes_per_token;
  operations_per_token += other.operations_per_token;
  return *this;
}

PartCosts CostsOf(const LayerSpec& layer) {
  PartCosts costs;
  for (const Operation& operation : layer.operations) {
    std::visit([&costs](const auto& op) { Add(op, costs); }, operation);
  }
  return costs;
}

PartCosts EmbeddingCosts(const ModelSpec& spec) {
  PartCosts costs;
  AddMatrix(spec.embedding, costs);
  costs.read_bytes_per_token = 0;
  costs.operations_per_token = 0;
  return costs;
}

PartCosts HeadCosts(const ModelSpec& spec) {
  PartCosts costs;
  AddMatrix(spec.head, costs);
  if (spec.head_is_embedding) {
    costs.parameters = 0;
    costs.stored_bytes = 0;
  }
  AddVector(spec.final_norm.weight, costs);
  return costs;
}

PartCosts CostsOf(const ModelSpec& spec) {
  PartCosts costs = EmbeddingCosts(spec);
  for (const LayerSpec& layer : spec.layers) {
    costs += CostsOf(layer);
  }
  costs += HeadCosts(spec);
  if (spec.head_is_embedding) {
    costs.tile_bytes -= MatrixTileBytes(spec.embedding);
  }
  return costs;
}

int64_t KvValuesPerToken(const LayerSpec& layer) {
  const AttentionOp* op = AttentionOf(layer);
  return op == nullptr ? 0 : 2 * op->num_kv_heads * op->head_dim;
}

int64_t KvBytesPerToken(const LayerSpec& layer, const KvFormat& format) {
  const AttentionOp* op = AttentionOf(layer);
  return op == nullptr
             ? 0
             : 2 * op->num_kv_heads * KvHeadBytes(format, op->head_dim);
}

int64_t WindowOf(const LayerSpec& layer) {
  const AttentionOp* op = AttentionOf(layer);
  return op == nullptr ? 0 : op->window;
}

double AttentionOperations(const LayerSpec& layer, int64_t num_keys) {
  const AttentionOp* op = AttentionOf(layer);
  if (op == nullptr) {
    return 0;
  }
  const int64_t seen =
      op->window > 0 ? std::min(op->window, num_keys) : num_keys;
  // A multiplication and an addition per element, for scores and for values.
  return 4.0 * static_cast<double>(op->num_heads) *
         static_cast<double>(op->head_dim) * static_cast<double>(seen);
}

const char* KindOf(const LayerSpec& layer) {
  const bool window = WindowOf(layer) > 0;
  if (HasExperts(layer)) {
    return window ? "window attention, experts" : "attention, experts";
  }
  return window ? "window attention, dense" : "attention, dense";
}

}  // namespace millrace::model
