#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"
#include "planner/families/family_readers.h"
#include "planner/families/layer_parts.h"

namespace millrace::planner {
namespace {

// Three layers in four are gated delta networks where no list says so.
constexpr int64_t kFullAttentionInterval = 4;

struct Shape {
  GroupedShape attention;
  std::vector<bool> attends;  // [layers]; else a gated delta network
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t taps = 0;
  // Qwen3-Next projects q, k, v and the gate at once, and b with a; Qwen3.5
  // each apart.
  bool fused = false;
  bool moe = false;
  int64_t dense_width = 0;
  int64_t expert_width = 0;
  int64_t shared_width = 0;
  int64_t experts = 0;
  int64_t experts_used = 0;
};

std::vector<bool> ReadAttentionLayers(ConfigReader& config,
                                      int64_t num_layers) {
  if (config.text().Has("layer_types")) {
    return config.LayersOfKind("layer_types", num_layers, "full_attention",
                               {"linear_attention"});
  }
  const int64_t interval = config.Or("full_attention_interval", 1,
                                     model::kLayersMax, kFullAttentionInterval);
  std::vector<bool> out(static_cast<size_t>(num_layers));
  for (int64_t i = 0; i < num_layers; ++i) {
    out[static_cast<size_t>(i)] = (i + 1) % interval == 0;
  }
  return out;
}

Shape ReadShape(ConfigReader& config, int64_t hidden, int64_t num_layers) {
  Shape shape;
  shape.attention.hidden = hidden;
  shape.attention.heads = config.Need("num_attention_heads", model::kHeadsMax);
  shape.attention.kv_heads =
      config.Need("num_key_value_heads", shape.attention.heads);
  shape.attention.head_dim = config.Need("head_dim", model::kHeadDimMax);
  shape.attention.head_norms = true;
  shape.attention.query_parts = 2;
  shape.attends = ReadAttentionLayers(config, num_layers);
  shape.key_heads = config.Need("linear_num_key_heads", model::kHeadsMax);
  shape.value_heads = config.Need("linear_num_value_heads", model::kHeadsMax);
  shape.key_dim = config.Need("linear_key_head_dim", model::kHeadDimMax);
  shape.value_dim = config.Need("linear_value_head_dim", model::kHeadDimMax);
  shape.taps = config.Need("linear_conv_kernel_dim", kTapsMax);
  shape.moe = config.text().Has("num_experts");
  if (!shape.moe) {
    shape.dense_width =
        config.Need("intermediate_size", model::kIntermediateMax);
    return shape;
  }
  shape.expert_width =
      config.Need("moe_intermediate_size", model::kIntermediateMax);
  shape.shared_width =
      config.Need("shared_expert_intermediate_size", model::kIntermediateMax);
  shape.experts = config.Need("num_experts", model::kExpertsMax);
  shape.experts_used = config.Need("num_experts_per_tok", shape.experts);
  return shape;
}

void AddDeltaNetwork(SheetBuilder& builder, LayerSheet& layer,
                     const std::string& module, const Shape& shape) {
  PartSheet& part = layer.weights;
  const int64_t hidden = shape.attention.hidden;
  const int64_t values = shape.value_heads * shape.value_dim;
  const int64_t mixed = 2 * shape.key_heads * shape.key_dim + values;
  if (shape.fused) {
    builder.Linear(part, module + ".in_proj_qkvz", mixed + values, hidden);
    builder.Linear(part, module + ".in_proj_ba", 2 * shape.value_heads, hidden);
  } else {
    builder.Linear(part, module + ".in_proj_qkv", mixed, hidden);
    builder.Linear(part, module + ".in_proj_z", values, hidden);
    builder.Linear(part, module + ".in_proj_b", shape.value_heads, hidden);
    builder.Linear(part, module + ".in_proj_a", shape.value_heads, hidden);
  }
  builder.Vector(part, mixed * shape.taps);
  builder.Vector(part, shape.value_heads);  // A_log
  builder.Vector(part, shape.value_heads);  // dt_bias
  builder.Vector(part, shape.value_dim);    // norm
  builder.Linear(part, module + ".out_proj", hidden, values);
  layer.recurrent_values = values * shape.key_dim;
  layer.convolution_values = (shape.taps - 1) * mixed;
}

void AddFfn(SheetBuilder& builder, LayerSheet& layer, const std::string& module,
            const Shape& shape) {
  const int64_t hidden = shape.attention.hidden;
  if (!shape.moe) {
    AddGatedFfn(builder, layer.weights, module,
                {hidden, shape.dense_width, {}});
    return;
  }
  builder.Router(layer.weights, shape.experts, hidden);
  AddGatedFfn(builder, layer.weights, module + ".shared_expert",
              {hidden, shape.shared_width, {}});
  builder.Vector(layer.weights, hidden);  // shared_expert_gate
  layer.experts = shape.experts;
  layer.experts_used = shape.experts_used;
  AddGatedFfn(builder, layer.expert, module + ".experts.0",
              {hidden, shape.expert_width, {}});
}

void AddLayer(SheetBuilder& builder, LayerSheet& layer, const Shape& shape,
              const std::string& module, bool attends) {
  layer.kind = absl::StrCat(attends ? "attention, " : "linear attention, ",
                            shape.moe ? "experts" : "dense");
  builder.Vector(layer.weights, shape.attention.hidden);
  builder.Vector(layer.weights, shape.attention.hidden);
  if (attends) {
    AddGroupedAttention(builder, layer, module + ".self_attn", shape.attention);
  } else {
    AddDeltaNetwork(builder, layer, module + ".linear_attn", shape);
  }
  AddFfn(builder, layer, module + ".mlp", shape);
}

}  // namespace

absl::StatusOr<ModelSheet> ReadQwen3Next(ConfigReader& config) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            config.text().StringOr("model_type", ""));
  ModelSheet sheet;
  sheet.hidden_size = config.Need("hidden_size", model::kHiddenMax);
  sheet.vocab_size = config.Need("vocab_size", model::kVocabMax);
  sheet.context_length =
      config.Need("max_position_embeddings", model::kContextMax);
  sheet.head_is_embedding = config.FlagOfEither("tie_word_embeddings", false);
  const int64_t num_layers =
      config.Need("num_hidden_layers", model::kLayersMax);
  Shape shape = ReadShape(config, sheet.hidden_size, num_layers);
  shape.fused = type == "qwen3_next";
  MILLRACE_RETURN_IF_ERROR(config.status());
  MILLRACE_ASSIGN_OR_RETURN(SheetBuilder builder, SheetBuilder::Create(config));
  const std::string prefix =
      &config.whole() == &config.text() ? "model" : "model.language_model";
  for (int64_t i = 0; i < num_layers; ++i) {
    AddLayer(builder, sheet.layers.emplace_back(), shape,
             absl::StrCat(prefix, ".layers.", i),
             shape.attends[static_cast<size_t>(i)]);
  }
  AddEnds(builder, sheet, prefix + ".embed_tokens", "lm_head");
  MILLRACE_RETURN_IF_ERROR(builder.status());
  return sheet;
}

}  // namespace millrace::planner
