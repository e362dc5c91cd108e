#pragma once

#include <cstdint>
#include <functional>

#include "model/spec/model_spec.h"

namespace millrace::model {

// One tensor that a spec uses: a matrix, or a vector (rows 0).
struct TensorUse {
  const TensorSource* source = nullptr;
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  int64_t rows = 0;
  int64_t cols = 0;                // elements of a vector
  int64_t layer = 0;               // -1: embedding, final norm, head
  const Matrix* matrix = nullptr;  // null: a vector
};

// Calls `visit` for every tensor: the embedding, the layers in order, final
// norm, head (not where it is the embedding). Divisors of the rotation come
// with every layer that rotates.
void ForEachTensor(const ModelSpec& spec,
                   const std::function<void(const TensorUse&)>& visit);
// Those of one layer alone.
void ForEachTensor(const LayerSpec& layer, int64_t layer_index,
                   const std::function<void(const TensorUse&)>& visit);

}  // namespace millrace::model
