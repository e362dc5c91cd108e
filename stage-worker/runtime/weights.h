#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/weight_format.h"
#include "model/checkpoint/checkpoint.h"
#include "model/spec/model_spec.h"
#include "stage-worker/runtime/mapped_memory.h"
#include "stage-worker/runtime/stage_config.h"
#include "stage-worker/runtime/stage_runner.h"

namespace millrace::worker {

// A matrix [rows, cols] as tiles in the stage's memory.
struct LoadedMatrix {
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* tiles = nullptr;
};

struct LoadedLinear {
  LoadedMatrix weight;
  const float* bias = nullptr;  // [rows] or null
};

struct LoadedNorm {
  const float* weight = nullptr;  // [width]; null: this norm does not exist
  float eps = 0;                  // added to the mean of squares
};

struct LoadedAttention {
  LoadedNorm norm;            // [hidden]
  LoadedNorm q_norm, k_norm;  // [head_dim], of every head
  LoadedLinear q;             // [num_heads * head_dim, hidden]
  LoadedLinear k, v;          // [num_kv_heads * head_dim, hidden]
  LoadedLinear o;             // [hidden, num_heads * head_dim]
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // positions that a row sees, its own included; 0: all
  // Points into the ModelSpec copy that Weights keeps; null: no rotation.
  const model::RopeSpec* rope = nullptr;
  // [rope->rotary_dims / 2], of the frequencies; null: none.
  const float* rope_divisors = nullptr;
};

struct LoadedDenseFfn {
  LoadedNorm norm;        // [hidden]
  LoadedLinear gate, up;  // [intermediate, hidden]
  LoadedLinear down;      // [hidden, intermediate]
};

struct LoadedExpert {
  LoadedMatrix gate, up;  // [intermediate, hidden]
  LoadedMatrix down;      // [hidden, intermediate]
};

struct LoadedMoeFfn {
  LoadedNorm norm;                    // [hidden]
  LoadedMatrix router;                // [num experts, hidden]
  std::vector<LoadedExpert> experts;  // in the router's order
  int64_t experts_per_token = 0;
  int64_t intermediate = 0;  // of each expert
  bool renormalise = true;   // the chosen weights sum to one
};

using LoadedOperation =
    std::variant<LoadedAttention, LoadedDenseFfn, LoadedMoeFfn>;

struct LoadedLayer {
  std::vector<LoadedOperation> operations;
};

// The weights of one stage, in the kernels' layout. Immutable after Load; any
// thread. Owns the memory that all pointers above lead into.
class Weights {
 public:
  using Progress = std::function<void(const LoadProgress&)>;
  using Cancelled = std::function<bool()>;

  // Reads this stage's byte ranges and nothing else, in parallel, each piece
  // straight into its tile. Peak memory is the weights and one read buffer of
  // a few MiB per loading thread.
  static absl::StatusOr<std::unique_ptr<Weights>> Load(
      const model::Checkpoint& checkpoint, const StageConfig& config,
      const Progress& progress, const Cancelled& cancelled);

  [[nodiscard]] const model::ModelSpec& spec() const { return *spec_; }
  [[nodiscard]] const std::vector<LoadedLayer>& layers() const {
    return layers_;
  }
  // Valid on the first and the last stage, respectively.
  [[nodiscard]] const LoadedMatrix& embedding() const { return embedding_; }
  [[nodiscard]] const LoadedNorm& final_norm() const { return final_norm_; }
  [[nodiscard]] const LoadedMatrix& head() const { return head_; }

 private:
  friend class WeightBuilder;
  Weights() = default;

  std::unique_ptr<model::ModelSpec> spec_;
  MappedMemory memory_;
  std::vector<LoadedLayer> layers_;
  LoadedMatrix embedding_;
  LoadedNorm final_norm_;
  LoadedMatrix head_;
};

}  // namespace millrace::worker
