#include "planner/layer_costs.h"

#include "model/spec/model_costs.h"
#include "model/spec/stage_memory.h"

namespace millrace::planner {

LayerCosts::LayerCosts(const model::ModelSpec& spec)
    : weights_{0}, bytes_{0}, flops_{0} {
  for (const model::LayerSpec& layer : spec.layers) {
    const model::PartCosts costs = model::CostsOf(layer);
    weights_.push_back(weights_.back() + model::LayerWeightBytes(layer));
    bytes_.push_back(bytes_.back() +
                     static_cast<double>(costs.read_bytes_per_token));
    flops_.push_back(flops_.back() + costs.operations_per_token);
  }
  const model::PartCosts head = model::HeadCosts(spec);
  first_weights_ = model::EmbeddingWeightBytes(spec);
  last_weights_ = model::HeadWeightBytes(spec);
  shared_weights_ =
      spec.head_is_embedding ? model::MatrixTileBytes(spec.head) : 0;
  last_bytes_ = static_cast<double>(head.read_bytes_per_token);
  last_flops_ = head.operations_per_token;
}

int64_t LayerCosts::WeightsBytes(int64_t begin, int64_t end) const {
  int64_t bytes =
      weights_[static_cast<size_t>(end)] - weights_[static_cast<size_t>(begin)];
  if (begin == 0) {
    bytes += first_weights_;
  }
  if (end == num_layers()) {
    bytes += last_weights_ - (begin == 0 ? shared_weights_ : 0);
  }
  return bytes;
}

double LayerCosts::BytesPerToken(int64_t begin, int64_t end) const {
  return bytes_[static_cast<size_t>(end)] - bytes_[static_cast<size_t>(begin)] +
         (end == num_layers() ? last_bytes_ : 0);
}

double LayerCosts::FlopsPerToken(int64_t begin, int64_t end) const {
  return flops_[static_cast<size_t>(end)] - flops_[static_cast<size_t>(begin)] +
         (end == num_layers() ? last_flops_ : 0);
}

}  // namespace millrace::planner
