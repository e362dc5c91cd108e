#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/quant/weight_format.h"

namespace millrace::model {

// What a checkpoint is, whatever its file format: sizes, the list of operations
// of every layer, and where each tensor's bytes lie. Plain values, made by a
// checkpoint reader and validated there: every matrix fits its operation and
// lies inside its file.

// Bytes of one tensor, or of a slice of one.
struct TensorSource {
  std::string name;  // in the checkpoint, for errors
  int32_t file_index = 0;
  int64_t offset = 0;  // in that file, any alignment
  int64_t bytes = 0;
  bool operator==(const TensorSource&) const = default;
};

enum class ScaleType : uint8_t { kF32, kF16, kBf16, kE8m0 };

// The tensors beside the codes of a weight that a checkpoint keeps in several;
// stored rows are composed of them (model/checkpoint/row_composer.h). Sizes:
// model/spec/matrix_bytes.h.
struct MatrixParts {
  TensorSource scales;  // [rows, cols / group]; FP8 [rows / 128, cols / 128]
  ScaleType scale_type = ScaleType::kBf16;
  // Columns that share a scale: divides cols, a multiple of 32. FP8: 128, the
  // last ones may be fewer.
  int64_t group_size = 0;
  // MLX: biases, like the scales. INT4: u32 [rows / 8, cols / group], eight
  // zero points of one column in each, the first row's lowest.
  std::optional<TensorSource> offsets;
  // I32 or I64 [2] that must hold (rows, cols); not part of any row.
  std::optional<TensorSource> shape;
};

// A weight matrix [rows = out features, cols = in features], row-major.
struct Matrix {
  TensorSource source;  // of a weight in parts: the codes
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  std::optional<MatrixParts> parts;
};

// A vector in f32, f16 or bf16; held as f32.
struct Vector {
  TensorSource source;
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  int64_t size = 0;
  bool operator==(const Vector&) const = default;
};

struct RmsNormSpec {
  Vector weight;
  double eps = 1e-6;
};

struct LinearSpec {
  Matrix weight;
  std::optional<Vector> bias;
};

enum class RopeScalingKind { kNone, kLinear, kDynamic, kLlama3, kYarn };

// specs of rotary embedding; formulas in kernels/rope.
struct RopeSpec {
  int64_t rotary_dims = 0;
  bool interleaved = false;  // GGUF arch llama and smollm3; else half-split
  double theta = 10000;
  RopeScalingKind scaling = RopeScalingKind::kNone;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_context = 0;  // dynamic: max_position_embeddings
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  double attention_factor = 1;     // yarn's A, resolved
  std::optional<Vector> divisors;  // rope_freqs.weight [rotary_dims / 2]
  bool operator==(const RopeSpec&) const = default;
};

// h += o(attention(q(norm(h)), k(norm(h)), v(norm(h))))
struct AttentionOp {
  RmsNormSpec norm;
  LinearSpec q, k, v, o;
  std::optional<RmsNormSpec> q_norm, k_norm;  // per head, before rope
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  std::optional<RopeSpec> rope;  // none: positions are not rotated (NoPE)
  // Keys visible to a row, itself included; 0: all.
  int64_t window = 0;
};

// h += down(silu(gate(norm(h))) * up(norm(h)))
struct DenseFfnOp {
  RmsNormSpec norm;
  LinearSpec gate, up, down;
  int64_t intermediate_size = 0;
};

struct ExpertSpec {
  Matrix gate, up, down;
};

// h += sum over the chosen experts of w_j * down_j(silu(gate_j x) * up_j x),
// x = norm(h), chosen by a softmax router.
struct MoeFfnOp {
  RmsNormSpec norm;
  Matrix router;  // [num_experts, hidden], computed exactly in both modes
  std::vector<ExpertSpec> experts;
  int64_t experts_per_token = 0;
  int64_t expert_intermediate_size = 0;
  bool renormalise = true;
};

// A layer is the list of what is done to the residual stream, in order. New
// families add operations here, not a new kind of layer.
using Operation = std::variant<AttentionOp, DenseFfnOp, MoeFfnOp>;

struct LayerSpec {
  std::vector<Operation> operations;
};

struct ModelSpec {
  std::string name;    // for people and /v1/models
  std::string family;  // llama, mistral, smollm3, qwen2, qwen3, qwen3_moe
  std::string digest;  // hex; see model/checkpoint/digest.h
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;  // rows of embedding and head
  int64_t context_length = 0;
  Matrix embedding;
  std::vector<LayerSpec> layers;
  RmsNormSpec final_norm;
  Matrix head;  // the embedding itself where tied
  bool head_is_embedding = false;
  std::vector<int32_t> stop_tokens;  // eos and turn terminators, ascending
  std::optional<int32_t> bos_token;
};

}  // namespace millrace::model
