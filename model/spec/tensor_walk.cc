#include "model/spec/tensor_walk.h"

#include <optional>
#include <variant>

namespace millrace::model {
namespace {

class Walker {
 public:
  Walker(int64_t layer, const std::function<void(const TensorUse&)>& visit)
      : layer_(layer), visit_(visit) {}

  void Visit(const Matrix& matrix) const {
    visit_({&matrix.source, matrix.format, matrix.rows, matrix.cols, layer_,
            &matrix});
  }
  void Visit(const Vector& vector) const {
    visit_({&vector.source, vector.format, 0, vector.size, layer_, nullptr});
  }
  void Visit(const LinearSpec& linear) const {
    Visit(linear.weight);
    if (linear.bias.has_value()) {
      Visit(*linear.bias);
    }
  }
  void Visit(const std::optional<RmsNormSpec>& norm) const {
    if (norm.has_value()) {
      Visit(norm->weight);
    }
  }
  void Visit(const AttentionOp& op) const {
    Visit(op.norm.weight);
    Visit(op.q);
    Visit(op.k);
    Visit(op.v);
    Visit(op.o);
    Visit(op.q_norm);
    Visit(op.k_norm);
    if (op.rope.has_value() && op.rope->divisors.has_value()) {
      Visit(*op.rope->divisors);
    }
  }
  void Visit(const DenseFfnOp& op) const {
    Visit(op.norm.weight);
    Visit(op.gate);
    Visit(op.up);
    Visit(op.down);
  }
  void Visit(const MoeFfnOp& op) const {
    Visit(op.norm.weight);
    Visit(op.router);
    for (const ExpertSpec& expert : op.experts) {
      Visit(expert.gate);
      Visit(expert.up);
      Visit(expert.down);
    }
  }

 private:
  const int64_t layer_;
  const std::function<void(const TensorUse&)>& visit_;
};

}  // namespace

void ForEachTensor(const LayerSpec& layer, int64_t layer_index,
                   const std::function<void(const TensorUse&)>& visit) {
  const Walker walker(layer_index, visit);
  for (const Operation& operation : layer.operations) {
    std::visit([&walker](const auto& op) { walker.Visit(op); }, operation);
  }
}

void ForEachTensor(const ModelSpec& spec,
                   const std::function<void(const TensorUse&)>& visit) {
  const Walker whole(-1, visit);
  whole.Visit(spec.embedding);
  int64_t index = 0;
  for (const LayerSpec& layer : spec.layers) {
    ForEachTensor(layer, index++, visit);
  }
  whole.Visit(spec.final_norm.weight);
  if (!spec.head_is_embedding) {
    whole.Visit(spec.head);
  }
}

}  // namespace millrace::model
