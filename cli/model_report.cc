#include "cli/model_report.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "boost/json/array.hpp"
#include "model/spec/matrix_bytes.h"
#include "model/spec/model_costs.h"
#include "model/spec/tensor_walk.h"

namespace millrace::cli {
namespace {

namespace json = boost::json;

using model::PartCosts;
using model::TensorUse;

// Of f16, the default of the cache.
constexpr model::KvFormat kKvFormat = model::kKv16Bit;

using BytesByFormat = std::map<std::string, int64_t>;

void Count(const TensorUse& use, BytesByFormat& bytes) {
  bytes[kernels::TraitsOf(use.format).name] +=
      use.matrix != nullptr ? model::CheckpointBytes(*use.matrix)
                            : use.source->bytes;
}

json::object FormatsJson(const BytesByFormat& bytes) {
  json::object out;
  for (const auto& [format, count] : bytes) {
    out[format] = count;
  }
  return out;
}

const char* RotationOf(const model::LayerSpec& layer) {
  for (const model::Operation& operation : layer.operations) {
    const auto* attention = std::get_if<model::AttentionOp>(&operation);
    if (attention == nullptr || !attention->rope.has_value()) {
      continue;
    }
    switch (attention->rope->scaling) {
      case model::RopeScalingKind::kNone:
        return attention->rope->divisors.has_value() ? "divisors" : "plain";
      case model::RopeScalingKind::kLinear:
        return "linear";
      case model::RopeScalingKind::kDynamic:
        return "dynamic";
      case model::RopeScalingKind::kLlama3:
        return "llama3";
      case model::RopeScalingKind::kYarn:
        return "yarn";
    }
  }
  return "none";
}

json::object LayerJson(const model::LayerSpec& layer, int64_t index) {
  const PartCosts costs = model::CostsOf(layer);
  BytesByFormat formats;
  model::ForEachTensor(layer, index,
                       [&](const TensorUse& use) { Count(use, formats); });
  json::object out;
  out["layer"] = index;
  out["kind"] = model::KindOf(layer);
  out["parameters"] = costs.parameters;
  out["stored_bytes"] = costs.stored_bytes;
  out["weights_bytes"] = costs.weights_bytes();
  out["bytes_by_format"] = FormatsJson(formats);
  out["kv_bytes_per_token"] = model::KvBytesPerToken(layer, kKvFormat);
  out["window"] = model::WindowOf(layer);
  out["rotation"] = RotationOf(layer);
  return out;
}

json::object PartJson(const PartCosts& costs, kernels::WeightFormat format) {
  json::object out;
  out["stored_bytes"] = costs.stored_bytes;
  out["weights_bytes"] = costs.weights_bytes();
  out["format"] = kernels::TraitsOf(format).name;
  return out;
}

json::object PlaceJson(const model::TensorSource& source,
                       absl::Span<const std::string> files) {
  json::object out;
  out["name"] = source.name;
  const auto file = static_cast<size_t>(source.file_index);
  out["file"] =
      file < files.size() ? Json(json::string(files[file])) : Json(nullptr);
  out["offset"] = source.offset;
  out["bytes"] = source.bytes;
  return out;
}

// Parameters that one token passes through; an embedding is a look-up.
int64_t ActiveParameters(const model::ModelSpec& spec) {
  double operations = model::HeadCosts(spec).operations_per_token;
  for (const model::LayerSpec& layer : spec.layers) {
    operations += model::CostsOf(layer).operations_per_token;
  }
  return static_cast<int64_t>(operations / 2);
}

}  // namespace

json::object ModelReport(const model::ModelSpec& spec) {
  const PartCosts costs = model::CostsOf(spec);
  BytesByFormat formats;
  model::ForEachTensor(spec,
                       [&](const TensorUse& use) { Count(use, formats); });
  json::object out;
  out["name"] = spec.name;
  out["family"] = spec.family;
  out["digest"] = spec.digest;
  out["layers"] = static_cast<int64_t>(spec.layers.size());
  out["hidden_size"] = spec.hidden_size;
  out["vocab_size"] = spec.vocab_size;
  out["context_length"] = spec.context_length;
  out["parameters"] = costs.parameters;
  out["parameters_active"] = ActiveParameters(spec);
  out["stored_bytes"] = costs.stored_bytes;
  out["weights_bytes"] = costs.weights_bytes();
  out["bytes_by_format"] = FormatsJson(formats);
  int64_t kv_bytes = 0;
  json::array layers;
  for (const model::LayerSpec& layer : spec.layers) {
    layers.push_back(LayerJson(layer, static_cast<int64_t>(layers.size())));
    kv_bytes += model::KvBytesPerToken(layer, kKvFormat);
  }
  out["kv_bytes_per_token"] = kv_bytes;
  out["state_bytes_per_sequence"] = 0;
  out["head_is_embedding"] = spec.head_is_embedding;
  out["stop_tokens"] =
      json::array(spec.stop_tokens.begin(), spec.stop_tokens.end());
  out["bos_token"] =
      spec.bos_token.has_value() ? Json(*spec.bos_token) : Json(nullptr);
  out["embedding"] =
      PartJson(model::EmbeddingCosts(spec), spec.embedding.format);
  out["head"] = PartJson(model::HeadCosts(spec), spec.head.format);
  out["layer_details"] = std::move(layers);
  return out;
}

json::array TensorReport(const model::ModelSpec& spec,
                         absl::Span<const std::string> files) {
  json::array out;
  model::ForEachTensor(spec, [&](const TensorUse& use) {
    json::object tensor = PlaceJson(*use.source, files);
    tensor["format"] = kernels::TraitsOf(use.format).name;
    tensor["shape"] =
        use.rows == 0 ? json::array{use.cols} : json::array{use.rows, use.cols};
    tensor["layer"] = use.layer < 0 ? Json(nullptr) : Json(use.layer);
    if (use.matrix != nullptr && use.matrix->parts.has_value()) {
      const model::MatrixParts& parts = *use.matrix->parts;
      json::array more = {PlaceJson(parts.scales, files)};
      for (const auto* part : {&parts.offsets, &parts.shape}) {
        if (part->has_value()) {
          more.push_back(PlaceJson(**part, files));
        }
      }
      tensor["parts"] = std::move(more);
    }
    out.push_back(std::move(tensor));
  });
  return out;
}

}  // namespace millrace::cli
