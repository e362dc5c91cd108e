#include "model/spec/stage_memory.h"

#include <algorithm>
#include <bit>
#include <map>
#include <variant>

#include "kernels/quant/tile.h"

namespace millrace::model {
namespace {

constexpr int64_t kAlignment = 64;
// Logits of one pass over the head: enough rows that its weights are read once
// for a usual batch, few enough that a 256 k vocabulary stays near 32 MB.
constexpr int64_t kLogitRowsMost = 32;
// Choices of experts that run together where a frame has fewer rows: enough
// that a batch of 32 with eight experts each is one pass.
constexpr int64_t kExpertRowsTogether = 256;

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

int64_t VectorBytes(const Vector& vector) {
  return RoundUp(vector.size * 4, kAlignment);
}

int64_t LinearBytes(const LinearSpec& linear) {
  return MatrixTileBytes(linear.weight) +
         (linear.bias.has_value() ? VectorBytes(*linear.bias) : 0);
}

int64_t OptionalNormBytes(const std::optional<RmsNormSpec>& norm) {
  return norm.has_value() ? VectorBytes(norm->weight) : 0;
}

struct OperationBytes {
  int64_t operator()(const AttentionOp& op) const {
    const int64_t divisors =
        op.rope.has_value() && op.rope->divisors.has_value()
            ? VectorBytes(*op.rope->divisors)
            : 0;
    return VectorBytes(op.norm.weight) + LinearBytes(op.q) + LinearBytes(op.k) +
           LinearBytes(op.v) + LinearBytes(op.o) +
           OptionalNormBytes(op.q_norm) + OptionalNormBytes(op.k_norm) +
           divisors;
  }
  int64_t operator()(const DenseFfnOp& op) const {
    return VectorBytes(op.norm.weight) + LinearBytes(op.gate) +
           LinearBytes(op.up) + LinearBytes(op.down);
  }
  int64_t operator()(const MoeFfnOp& op) const {
    int64_t bytes = VectorBytes(op.norm.weight) + MatrixTileBytes(op.router);
    for (const ExpertSpec& expert : op.experts) {
      bytes += MatrixTileBytes(expert.gate) + MatrixTileBytes(expert.up) +
               MatrixTileBytes(expert.down);
    }
    return bytes;
  }
};

struct WidenSizes {
  ActivationSizes& sizes;

  void Input(int64_t cols) const {
    sizes.widest_input = std::max(sizes.widest_input, cols);
  }
  void operator()(const AttentionOp& op) const {
    sizes.q = std::max(sizes.q, op.num_heads * op.head_dim);
    sizes.kv = std::max(sizes.kv, op.num_kv_heads * op.head_dim);
    Input(op.o.weight.cols);
  }
  void operator()(const DenseFfnOp& op) const {
    sizes.intermediate = std::max(sizes.intermediate, op.intermediate_size);
    Input(op.down.weight.cols);
  }
  void operator()(const MoeFfnOp& op) const {
    sizes.intermediate =
        std::max(sizes.intermediate, op.expert_intermediate_size);
    sizes.experts =
        std::max(sizes.experts, static_cast<int64_t>(op.experts.size()));
    sizes.experts_per_token =
        std::max(sizes.experts_per_token, op.experts_per_token);
    Input(op.expert_intermediate_size);
  }
};

int64_t WindowBlocks(int64_t window, const StageShape& shape) {
  const int64_t all =
      RoundUp(shape.context, kKvBlockPositions) / kKvBlockPositions;
  if (window == 0) {
    return all;
  }
  // window + chunk - 1 positions in a row may straddle one block more than
  // they fill.
  const int64_t span = window + std::max<int64_t>(shape.prefill_chunk, 1);
  return std::min(all,
                  RoundUp(span, kKvBlockPositions) / kKvBlockPositions + 1);
}

}  // namespace

int64_t MatrixTileBytes(const Matrix& matrix) {
  return kernels::NumTiles(matrix.rows) *
         kernels::TileBytes(matrix.format, matrix.cols);
}

int64_t LayerWeightBytes(const LayerSpec& layer) {
  int64_t bytes = 0;
  for (const Operation& operation : layer.operations) {
    bytes += std::visit(OperationBytes{}, operation);
  }
  return bytes;
}

int64_t EmbeddingWeightBytes(const ModelSpec& spec) {
  return MatrixTileBytes(spec.embedding);
}

int64_t HeadWeightBytes(const ModelSpec& spec) {
  return VectorBytes(spec.final_norm.weight) + MatrixTileBytes(spec.head);
}

int64_t KvLayerBlockBytes(const AttentionOp& attention,
                          const KvFormat& format) {
  return RoundUp(2 * kKvBlockPositions * attention.num_kv_heads *
                     KvHeadBytes(format, attention.head_dim),
                 kAlignment);
}

std::vector<KvGroup> KvGroupsOf(const ModelSpec& spec,
                                const StageShape& shape) {
  std::map<int64_t, KvGroup> by_window;  // ordered: part of the contract
  for (int64_t layer = shape.first_layer; layer <= shape.last_layer; ++layer) {
    for (const Operation& operation :
         spec.layers[static_cast<size_t>(layer)].operations) {
      const auto* attention = std::get_if<AttentionOp>(&operation);
      if (attention == nullptr) {
        continue;
      }
      // A window as long as the context sees everything.
      const int64_t window =
          attention->window >= shape.context ? 0 : attention->window;
      KvGroup& group = by_window[window];
      group.window = window;
      group.layers.push_back(layer);
      group.block_bytes += KvLayerBlockBytes(*attention, shape.kv);
    }
  }
  std::vector<KvGroup> groups;
  for (auto& [window, group] : by_window) {
    group.blocks_per_sequence = WindowBlocks(window, shape);
    group.num_blocks = group.blocks_per_sequence * shape.sequences;
    groups.push_back(std::move(group));
  }
  return groups;
}

int64_t LogitRowsMax(const ModelSpec& spec, const StageShape& shape) {
  const int64_t fitting =
      (int64_t{32} << 20) / std::max<int64_t>(spec.vocab_size * 4, 1);
  return std::clamp<int64_t>(std::min(fitting, shape.rows_max), 1,
                             kLogitRowsMost);
}

int64_t SamplerBytes(int64_t vocab_size) {
  // Adjusted logits, weights, candidates of 8 bytes; a sum per block.
  constexpr int64_t kBytesPerToken = 16;
  constexpr int64_t kBlock = 1024;
  return vocab_size * kBytesPerToken + (vocab_size + kBlock - 1) / kBlock * 4;
}

TokenHistorySize TokenHistorySizeOf(int64_t vocab_size, int64_t tokens_max) {
  TokenHistorySize size;
  size.entries = std::max<int64_t>(std::min(vocab_size, tokens_max), 1);
  size.table = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(2 * size.entries)));
  return size;
}

int64_t TokenHistoriesBytes(int64_t vocab_size, int64_t context,
                            int64_t slots) {
  return RoundUp(slots * TokenHistorySizeOf(vocab_size, context).numbers() * 4,
                 kAlignment);
}

int64_t PackedRowsBytesMax(int64_t rows, int64_t cols) {
  // The int8 form takes 48 bytes per group of 32, the bf16 form 4 per pair,
  // f32 4 per element; a short tail is padded to a group.
  return RoundUp(rows * RoundUp(cols, 32) * 4, kAlignment);
}

std::vector<const RopeSpec*> DistinctRopes(const ModelSpec& spec,
                                           const StageShape& shape) {
  std::vector<const RopeSpec*> ropes;
  for (int64_t layer = shape.first_layer; layer <= shape.last_layer; ++layer) {
    for (const Operation& operation :
         spec.layers[static_cast<size_t>(layer)].operations) {
      const auto* attention = std::get_if<AttentionOp>(&operation);
      if (attention == nullptr || !attention->rope.has_value()) {
        continue;
      }
      const bool known = std::any_of(
          ropes.begin(), ropes.end(),
          [&](const RopeSpec* rope) { return *rope == *attention->rope; });
      if (!known) {
        ropes.push_back(&*attention->rope);
      }
    }
  }
  return ropes;
}

ActivationSizes ActivationSizesOf(const ModelSpec& spec,
                                  const StageShape& shape) {
  ActivationSizes sizes;
  sizes.hidden = spec.hidden_size;
  sizes.widest_input = spec.hidden_size;
  for (int64_t layer = shape.first_layer; layer <= shape.last_layer; ++layer) {
    for (const Operation& operation :
         spec.layers[static_cast<size_t>(layer)].operations) {
      std::visit(WidenSizes{sizes}, operation);
    }
  }
  for (const RopeSpec* rope : DistinctRopes(spec, shape)) {
    sizes.rope_pairs += rope->rotary_dims / 2;
  }
  return sizes;
}

int64_t FfnRowsMax(const ActivationSizes& sizes, int64_t rows_max) {
  return std::max(rows_max, std::min(rows_max * sizes.experts_per_token,
                                     kExpertRowsTogether));
}

int64_t StageWeightsBytes(const ModelSpec& spec, const StageShape& shape) {
  int64_t bytes = 0;
  for (int64_t layer = shape.first_layer; layer <= shape.last_layer; ++layer) {
    bytes += LayerWeightBytes(spec.layers[static_cast<size_t>(layer)]);
  }
  if (shape.holds_embedding) {
    bytes += EmbeddingWeightBytes(spec);
  }
  if (shape.holds_head) {
    bytes += HeadWeightBytes(spec);
    if (spec.head_is_embedding && shape.holds_embedding) {
      bytes -= MatrixTileBytes(spec.head);
    }
  }
  return bytes;
}

int64_t StageKvBytes(const ModelSpec& spec, const StageShape& shape) {
  int64_t bytes = 0;
  for (const KvGroup& group : KvGroupsOf(spec, shape)) {
    bytes += group.num_blocks * group.block_bytes;
  }
  return bytes;
}

int64_t StageScratchBytes(const ModelSpec& spec, const StageShape& shape) {
  const ActivationSizes sizes = ActivationSizesOf(spec, shape);
  const int64_t rows = shape.rows_max;
  const int64_t ffn_rows = FfnRowsMax(sizes, rows);
  int64_t bytes = 0;
  const auto floats = [&](int64_t per_row) {
    return RoundUp(rows * per_row * 4, kAlignment);
  };
  // hidden, normed, q, attention output, k, v, gate, up.
  bytes += 2 * floats(sizes.hidden) + 2 * floats(sizes.q) +
           2 * floats(sizes.kv) +
           2 * RoundUp(ffn_rows * sizes.intermediate * 4, kAlignment);
  // One packed copy per form that a layer's products may mix.
  bytes += 3 * PackedRowsBytesMax(ffn_rows, sizes.widest_input);
  bytes += 2 * floats(sizes.rope_pairs);  // cos, sin
  // Scores and numbers of choices, per expert.
  bytes += 2 * RoundUp(sizes.experts * 4, kAlignment);
  // Router logits, choices and weights, and one output row per choice.
  bytes +=
      floats(sizes.experts) + 3 * floats(sizes.experts_per_token) +
      RoundUp(rows * sizes.experts_per_token * sizes.hidden * 4, kAlignment);
  if (shape.holds_head) {
    bytes +=
        RoundUp(LogitRowsMax(spec, shape) * spec.vocab_size * 4, kAlignment) +
        kSampledTogether * SamplerBytes(spec.vocab_size) +
        TokenHistoriesBytes(spec.vocab_size, shape.context, shape.slots);
  }
  return bytes;
}

StageBytes StageBytesOf(const ModelSpec& spec, const StageShape& shape) {
  StageBytes bytes;
  bytes.weights_bytes = StageWeightsBytes(spec, shape);
  bytes.kv_bytes = StageKvBytes(spec, shape);
  bytes.scratch_bytes = StageScratchBytes(spec, shape);
  return bytes;
}

}  // namespace millrace::model
