#include "tests/support/tiny_layout.h"

#include <cmath>
#include <utility>

#include "model/checkpoint/tensor_names.h"

namespace millrace::testing {
namespace {

using model::BiasName;
using model::ExpertName;
using model::GlobalPart;
using model::LayerPart;
using model::NameStyle;
using model::TensorName;

class LayoutMaker {
 public:
  LayoutMaker(const TinyModel& model, bool stacked)
      : m_(model), stacked_(stacked) {}

  std::vector<TinyTensor> Make() {
    const double unit = 1 / std::sqrt(static_cast<double>(m_.hidden_size));
    AddGlobal(GlobalPart::kEmbedding, {m_.vocab_size, m_.hidden_size}, 1);
    for (int64_t layer = 0; layer < m_.num_layers; ++layer) {
      AddAttention(layer);
      AddNorm(LayerPart::kFfnNorm, layer, m_.hidden_size);
      if (m_.family == TinyFamily::kQwen3Moe) {
        AddExperts(layer);
      } else {
        AddMatrix(LayerPart::kGate, layer, m_.intermediate_size,
                  m_.hidden_size);
        AddMatrix(LayerPart::kUp, layer, m_.intermediate_size, m_.hidden_size);
        AddMatrix(LayerPart::kDown, layer, m_.hidden_size,
                  m_.intermediate_size);
      }
    }
    AddGlobal(GlobalPart::kFinalNorm, {m_.hidden_size}, 0.05);
    if (!m_.tied) {
      // Larger, so that the best logit stands out.
      AddGlobal(GlobalPart::kHead, {m_.vocab_size, m_.hidden_size}, 3 * unit);
    }
    return std::move(out_);
  }

 private:
  static double Deviation(int64_t cols) {
    return 1 / std::sqrt(static_cast<double>(cols));
  }
  TinyRows Rows(const std::string& name, int64_t cols, double mean,
                double deviation) const {
    return TinyRows{name, m_.seed, cols, mean, deviation};
  }
  void Add(TinyTensor tensor) { out_.push_back(std::move(tensor)); }

  void AddGlobal(GlobalPart part, std::vector<int64_t> shape,
                 double deviation) {
    TinyTensor tensor;
    tensor.name = TensorName(NameStyle::kHuggingFace, part);
    tensor.gguf_name = TensorName(NameStyle::kGguf, part);
    const bool vector = shape.size() == 1;
    tensor.rows_per_part = vector ? 1 : shape[0];
    tensor.parts = {Rows(tensor.name, shape.back(), vector ? 1 : 0, deviation)};
    tensor.shape = std::move(shape);
    Add(std::move(tensor));
  }
  void AddVector(const std::string& name, const std::string& gguf_name,
                 int64_t size, double mean, double deviation) {
    TinyTensor tensor;
    tensor.name = name;
    tensor.gguf_name = gguf_name;
    tensor.shape = {size};
    tensor.parts = {Rows(name, size, mean, deviation)};
    Add(std::move(tensor));
  }
  void AddNorm(LayerPart part, int64_t layer, int64_t size) {
    AddVector(TensorName(NameStyle::kHuggingFace, part, layer),
              TensorName(NameStyle::kGguf, part, layer), size, 1, 0.05);
  }
  TinyTensor Matrix(LayerPart part, int64_t layer, int64_t rows,
                    int64_t cols) const {
    TinyTensor tensor;
    tensor.name = TensorName(NameStyle::kHuggingFace, part, layer);
    tensor.gguf_name = TensorName(NameStyle::kGguf, part, layer);
    tensor.shape = {rows, cols};
    tensor.rows_per_part = rows;
    tensor.parts = {Rows(tensor.name, cols, 0, Deviation(cols))};
    return tensor;
  }
  void AddMatrix(LayerPart part, int64_t layer, int64_t rows, int64_t cols) {
    Add(Matrix(part, layer, rows, cols));
  }
  void AddProjection(LayerPart part, int64_t layer, int64_t rows) {
    TinyTensor tensor = Matrix(part, layer, rows, m_.hidden_size);
    tensor.rotated_rows = part != LayerPart::kValue;
    Add(std::move(tensor));
    if (m_.family == TinyFamily::kQwen2) {
      AddVector(BiasName(NameStyle::kHuggingFace, part, layer),
                BiasName(NameStyle::kGguf, part, layer), rows, 0, 0.3);
    }
  }
  void AddAttention(int64_t layer);
  void AddExperts(int64_t layer);
  TinyTensor ExpertStack(LayerPart fused, int64_t layer,
                         const std::vector<LayerPart>& matrices, int64_t rows,
                         int64_t cols) const;

  const TinyModel& m_;
  const bool stacked_;
  std::vector<TinyTensor> out_;
};

void LayoutMaker::AddAttention(int64_t layer) {
  AddNorm(LayerPart::kAttentionNorm, layer, m_.hidden_size);
  AddProjection(LayerPart::kQuery, layer, m_.num_heads * m_.head_dim);
  AddProjection(LayerPart::kKey, layer, m_.num_kv_heads * m_.head_dim);
  AddProjection(LayerPart::kValue, layer, m_.num_kv_heads * m_.head_dim);
  AddMatrix(LayerPart::kOutput, layer, m_.hidden_size,
            m_.num_heads * m_.head_dim);
  if (m_.family == TinyFamily::kQwen3 || m_.family == TinyFamily::kQwen3Moe) {
    AddNorm(LayerPart::kQueryNorm, layer, m_.head_dim);
    AddNorm(LayerPart::kKeyNorm, layer, m_.head_dim);
  }
}

// Rows of every expert in turn; of one expert, those of `matrices` in turn.
TinyTensor LayoutMaker::ExpertStack(LayerPart fused, int64_t layer,
                                    const std::vector<LayerPart>& matrices,
                                    int64_t rows, int64_t cols) const {
  TinyTensor tensor;
  tensor.name = TensorName(NameStyle::kHuggingFace, fused, layer);
  tensor.gguf_name = TensorName(NameStyle::kGguf, fused, layer);
  tensor.shape = {m_.num_experts, rows * static_cast<int64_t>(matrices.size()),
                  cols};
  tensor.rows_per_part = rows;
  for (int64_t expert = 0; expert < m_.num_experts; ++expert) {
    for (const LayerPart part : matrices) {
      tensor.parts.push_back(
          Rows(ExpertName(part, layer, expert), cols, 0, Deviation(cols)));
    }
  }
  return tensor;
}

void LayoutMaker::AddExperts(int64_t layer) {
  const int64_t hidden = m_.hidden_size;
  const int64_t inner = m_.expert_intermediate_size;
  TinyTensor router = Matrix(LayerPart::kRouter, layer, m_.num_experts, hidden);
  router.router = true;
  Add(std::move(router));
  if (m_.fused_experts) {
    Add(ExpertStack(LayerPart::kFusedGateUp, layer,
                    {LayerPart::kGate, LayerPart::kUp}, inner, hidden));
    Add(ExpertStack(LayerPart::kFusedDown, layer, {LayerPart::kDown}, hidden,
                    inner));
    return;
  }
  if (stacked_) {
    Add(ExpertStack(LayerPart::kFusedGate, layer, {LayerPart::kGate}, inner,
                    hidden));
    Add(ExpertStack(LayerPart::kFusedUp, layer, {LayerPart::kUp}, inner,
                    hidden));
    Add(ExpertStack(LayerPart::kFusedDown, layer, {LayerPart::kDown}, hidden,
                    inner));
    return;
  }
  for (int64_t expert = 0; expert < m_.num_experts; ++expert) {
    for (const LayerPart part :
         {LayerPart::kGate, LayerPart::kUp, LayerPart::kDown}) {
      const bool down = part == LayerPart::kDown;
      TinyTensor tensor;
      tensor.name = ExpertName(part, layer, expert);
      tensor.shape = {down ? hidden : inner, down ? inner : hidden};
      tensor.rows_per_part = tensor.shape[0];
      tensor.parts = {
          Rows(tensor.name, tensor.shape[1], 0, Deviation(tensor.shape[1]))};
      Add(std::move(tensor));
    }
  }
}

}  // namespace

std::vector<TinyTensor> TinyTensors(const TinyModel& model, bool stacked) {
  return LayoutMaker(model, stacked).Make();
}

}  // namespace millrace::testing
