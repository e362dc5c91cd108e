#include "stage-worker/runtime/weights.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/quant/tile.h"
#include "stage-worker/runtime/stage_shape.h"
#include "stage-worker/runtime/tensor_loader.h"

namespace millrace::worker {

// Lays the stage's tensors out in one block of memory and lists what has to be
// read into which place.
class WeightBuilder {
 public:
  WeightBuilder(Weights& weights, int64_t bytes)
      : weights_(weights),
        bytes_(bytes),
        carver_(weights.memory_.data(), bytes) {}

  void Build(const StageConfig& config) {
    const model::ModelSpec& spec = *weights_.spec_;
    if (config.holds_embedding) {
      weights_.embedding_ = Place(spec.embedding);
    }
    for (int64_t layer = config.first_layer; layer <= config.last_layer;
         ++layer) {
      LoadedLayer& loaded = weights_.layers_.emplace_back();
      for (const model::Operation& operation :
           spec.layers[static_cast<size_t>(layer)].operations) {
        loaded.operations.push_back(std::visit(
            [this](const auto& op) { return Place(op); }, operation));
      }
    }
    if (config.holds_head) {
      weights_.final_norm_ = Place(spec.final_norm);
      weights_.head_ = spec.head_is_embedding && config.holds_embedding
                           ? weights_.embedding_
                           : Place(spec.head);
    }
    MILLRACE_CHECK(carver_.used() == bytes_);
  }

  std::vector<MatrixRead> TakeMatrixReads() { return std::move(matrices_); }
  std::vector<VectorRead> TakeVectorReads() { return std::move(vectors_); }

 private:
  LoadedMatrix Place(const model::Matrix& matrix) {
    std::byte* tiles = carver_.Take(model::MatrixTileBytes(matrix));
    matrices_.push_back({&matrix, tiles});
    return {matrix.format, matrix.rows, matrix.cols, tiles};
  }
  const float* Place(const model::Vector& vector) {
    float* values = carver_.TakeFloats(vector.size);
    vectors_.push_back({&vector, values});
    return values;
  }
  LoadedNorm Place(const model::RmsNormSpec& norm) {
    return {Place(norm.weight), static_cast<float>(norm.eps)};
  }
  LoadedNorm PlaceOptional(const std::optional<model::RmsNormSpec>& norm) {
    return norm.has_value() ? Place(*norm) : LoadedNorm{};
  }
  LoadedLinear Place(const model::LinearSpec& linear) {
    LoadedLinear loaded;
    loaded.weight = Place(linear.weight);
    loaded.bias = linear.bias.has_value() ? Place(*linear.bias) : nullptr;
    return loaded;
  }
  LoadedOperation Place(const model::AttentionOp& op) {
    LoadedAttention loaded;
    loaded.norm = Place(op.norm);
    loaded.q = Place(op.q);
    loaded.k = Place(op.k);
    loaded.v = Place(op.v);
    loaded.o = Place(op.o);
    loaded.q_norm = PlaceOptional(op.q_norm);
    loaded.k_norm = PlaceOptional(op.k_norm);
    loaded.num_heads = op.num_heads;
    loaded.num_kv_heads = op.num_kv_heads;
    loaded.head_dim = op.head_dim;
    loaded.window = op.window;
    if (op.rope.has_value()) {
      loaded.rope = &*op.rope;
      if (op.rope->divisors.has_value()) {
        loaded.rope_divisors = Place(*op.rope->divisors);
      }
    }
    return loaded;
  }
  LoadedOperation Place(const model::DenseFfnOp& op) {
    LoadedDenseFfn loaded;
    loaded.norm = Place(op.norm);
    loaded.gate = Place(op.gate);
    loaded.up = Place(op.up);
    loaded.down = Place(op.down);
    return loaded;
  }
  LoadedOperation Place(const model::MoeFfnOp& op) {
    LoadedMoeFfn loaded;
    loaded.norm = Place(op.norm);
    loaded.router = Place(op.router);
    loaded.experts.reserve(op.experts.size());
    for (const model::ExpertSpec& expert : op.experts) {
      loaded.experts.push_back(
          {Place(expert.gate), Place(expert.up), Place(expert.down)});
    }
    loaded.experts_per_token = op.experts_per_token;
    loaded.intermediate = op.expert_intermediate_size;
    loaded.renormalise = op.renormalise;
    return loaded;
  }

  Weights& weights_;
  const int64_t bytes_;
  Carver carver_;
  std::vector<MatrixRead> matrices_;
  std::vector<VectorRead> vectors_;
};

absl::StatusOr<std::unique_ptr<Weights>> Weights::Load(
    const model::Checkpoint& checkpoint, const StageConfig& config,
    const Progress& progress, const Cancelled& cancelled) {
  std::unique_ptr<Weights> weights(new Weights());
  weights->spec_ = std::make_unique<model::ModelSpec>(checkpoint.spec());
  const int64_t bytes =
      model::StageBytesOf(*weights->spec_, ShapeOf(config)).weights_bytes;
  MILLRACE_ASSIGN_OR_RETURN(weights->memory_,
                            MappedMemory::Map(bytes, kStageMemoryRemedy));
  WeightBuilder builder(*weights, bytes);
  builder.Build(config);
  MILLRACE_RETURN_IF_ERROR(LoadTensors(checkpoint, builder.TakeMatrixReads(),
                                       builder.TakeVectorReads(), progress,
                                       cancelled));
  return weights;
}

}  // namespace millrace::worker
