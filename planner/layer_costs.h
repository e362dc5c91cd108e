#pragma once

#include <cstdint>
#include <vector>

#include "model/spec/model_spec.h"

namespace millrace::planner {

// Prefix sums over the layers of a model of what a pass of one token costs;
// the embedding stands with layer 0, norm and head with the last layer.
class LayerCosts {
 public:
  explicit LayerCosts(const model::ModelSpec& spec);

  [[nodiscard]] int64_t num_layers() const {
    return static_cast<int64_t>(weights_.size()) - 1;
  }
  // Layers [begin, end): bytes of weights held; where one stage holds a tied
  // head and the embedding, once.
  [[nodiscard]] int64_t WeightsBytes(int64_t begin, int64_t end) const;
  // Bytes read and operations done for one token.
  [[nodiscard]] double BytesPerToken(int64_t begin, int64_t end) const;
  [[nodiscard]] double FlopsPerToken(int64_t begin, int64_t end) const;
  // Relative time of decoding one token on nodes of unknown speed, in bytes: a
  // processor does about ten operations while it reads a byte of weights.
  [[nodiscard]] double NominalCost(int64_t begin, int64_t end) const {
    constexpr double kOperationsPerByte = 10;
    return BytesPerToken(begin, end) +
           FlopsPerToken(begin, end) / kOperationsPerByte;
  }

 private:
  std::vector<int64_t> weights_;  // [layers + 1], before each layer
  std::vector<double> bytes_;
  std::vector<double> flops_;
  int64_t first_weights_ = 0;
  int64_t last_weights_ = 0;
  int64_t shared_weights_ = 0;  // counted twice where both ends are one stage
  double last_bytes_ = 0;
  double last_flops_ = 0;
};

}  // namespace millrace::planner
