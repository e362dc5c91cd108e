#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"
#include "planner/families/family_readers.h"
#include "planner/families/layer_parts.h"

namespace millrace::planner {
namespace {

struct Shape {
  int64_t hidden = 0;
  int64_t num_layers = 0;
  std::vector<bool> sliding;  // [layers]
  int64_t window = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;          // of sliding layers
  int64_t full_kv_heads = 0;     // of the others
  int64_t head_dim = 0;          // of sliding layers
  int64_t full_head_dim = 0;     // of the others
  bool values_are_keys = false;  // on full layers: no value projection
  int64_t width = 0;
  bool double_wide = false;   // in layers that share KV
  int64_t shared_layers = 0;  // the last so many keep no KV of their own
  int64_t layer_input = 0;    // size of the embeddings per layer; 0: none
  int64_t layer_vocab = 0;
  int64_t experts = 0;
  int64_t experts_used = 0;
  int64_t expert_width = 0;
};

void ReadMoe(ConfigReader& config, Shape& shape) {
  if (!config.Flag("enable_moe_block", false)) {
    return;
  }
  shape.experts = config.Need("num_experts", model::kExpertsMax);
  shape.experts_used =
      config.NeedAny({"top_k_experts", "num_experts_per_tok"}, shape.experts);
  shape.expert_width =
      config.Need("moe_intermediate_size", model::kIntermediateMax);
}

Shape ReadShape(ConfigReader& config, int64_t vocab_size) {
  Shape shape;
  shape.hidden = config.Need("hidden_size", model::kHiddenMax);
  shape.num_layers = config.Need("num_hidden_layers", model::kLayersMax);
  shape.sliding = config.LayersOfKind("layer_types", shape.num_layers,
                                      "sliding_attention", {"full_attention"});
  shape.window = config.Need("sliding_window", model::kContextMax);
  shape.heads = config.Need("num_attention_heads", model::kHeadsMax);
  shape.kv_heads = config.Need("num_key_value_heads", shape.heads);
  shape.values_are_keys = config.Flag("attention_k_eq_v", false);
  // Read only where values are keys; other models repeat num_key_value_heads.
  shape.full_kv_heads = shape.values_are_keys
                            ? config.Or("num_global_key_value_heads", 1,
                                        shape.heads, shape.kv_heads)
                            : shape.kv_heads;
  shape.head_dim = config.Need("head_dim", model::kHeadDimMax);
  shape.full_head_dim = config.Need("global_head_dim", model::kHeadDimMax);
  shape.width = config.Need("intermediate_size", model::kIntermediateMax);
  shape.double_wide = config.Flag("use_double_wide_mlp", false);
  shape.shared_layers =
      config.Or("num_kv_shared_layers", 0, shape.num_layers - 1, 0);
  shape.layer_input =
      config.Or("hidden_size_per_layer_input", 0, model::kHiddenMax, 0);
  shape.layer_vocab =
      config.Or("vocab_size_per_layer_input", 1, model::kVocabMax, vocab_size);
  ReadMoe(config, shape);
  return shape;
}

// The last layer of this kind that keeps KV; -1: none does.
int64_t KvSource(const Shape& shape, bool sliding) {
  for (int64_t i = shape.num_layers - shape.shared_layers - 1; i >= 0; --i) {
    if (shape.sliding[static_cast<size_t>(i)] == sliding) {
      return i;
    }
  }
  return -1;
}

// Vectors across a cut before layer i: the hidden state, the embedded token
// that the inputs per layer are made of, and keys and values that layers behind
// the cut share with one before it, in whole vectors.
int64_t VectorsBefore(const Shape& shape, int64_t i) {
  if (i == 0) {
    return 1;
  }
  int64_t values = 0;
  for (const bool sliding : {false, true}) {
    const int64_t source = KvSource(shape, sliding);
    const auto begin = shape.sliding.begin();
    const int64_t first_shared =
        std::max(i, shape.num_layers - shape.shared_layers);
    const bool used = std::find(begin + first_shared, shape.sliding.end(),
                                sliding) != shape.sliding.end();
    if (shape.shared_layers > 0 && source >= 0 && source < i && used) {
      values += sliding ? 2 * shape.kv_heads * shape.head_dim
                        : 2 * shape.full_kv_heads * shape.full_head_dim;
    }
  }
  return 1 + (shape.layer_input > 0 ? 1 : 0) +
         (values + shape.hidden - 1) / shape.hidden;
}

void AddAttention(SheetBuilder& builder, LayerSheet& layer,
                  const std::string& module, const Shape& shape, bool shares) {
  const bool sliding = layer.window > 0;
  const int64_t head_dim = sliding ? shape.head_dim : shape.full_head_dim;
  const int64_t kv_heads = sliding ? shape.kv_heads : shape.full_kv_heads;
  PartSheet& part = layer.weights;
  builder.Linear(part, module + ".q_proj", shape.heads * head_dim,
                 shape.hidden);
  builder.Linear(part, module + ".o_proj", shape.hidden,
                 shape.heads * head_dim);
  builder.Vector(part, head_dim);  // q_norm
  if (shares) {
    return;
  }
  builder.Linear(part, module + ".k_proj", kv_heads * head_dim, shape.hidden);
  if (sliding || !shape.values_are_keys) {
    builder.Linear(part, module + ".v_proj", kv_heads * head_dim, shape.hidden);
  }
  builder.Vector(part, head_dim);  // k_norm
  layer.kv.push_back({2 * kv_heads, head_dim});
}

void AddFfn(SheetBuilder& builder, LayerSheet& layer, const std::string& module,
            const Shape& shape, bool shares) {
  const int64_t width =
      shares && shape.double_wide ? 2 * shape.width : shape.width;
  AddGatedFfn(builder, layer.weights, module + ".mlp",
              {shape.hidden, width, {}});
  if (shape.experts == 0) {
    return;
  }
  builder.Router(layer.weights, shape.experts, shape.hidden);
  builder.Vector(layer.weights, shape.hidden);   // router.scale
  builder.Vector(layer.weights, shape.experts);  // per_expert_scale
  for (int norm = 0; norm < 3; ++norm) {
    builder.Vector(layer.weights, shape.hidden);
  }
  layer.experts = shape.experts;
  layer.experts_used = shape.experts_used;
  AddGatedFfn(builder, layer.expert, module + ".experts.0",
              {shape.hidden, shape.expert_width, {}});
}

// The layer's own columns of the embeddings per layer stand with it, so that no
// stage needs all of them.
void AddLayerInput(SheetBuilder& builder, LayerSheet& layer,
                   const std::string& module, const Shape& shape) {
  builder.Plain(layer.tables, shape.layer_vocab, shape.layer_input);
  PartSheet& part = layer.weights;
  builder.Linear(part, module + ".per_layer_model_projection",
                 shape.layer_input, shape.hidden);
  builder.Linear(part, module + ".per_layer_input_gate", shape.layer_input,
                 shape.hidden);
  builder.Linear(part, module + ".per_layer_projection", shape.hidden,
                 shape.layer_input);
  builder.Vector(part, shape.hidden);  // post_per_layer_input_norm
}

void AddLayer(SheetBuilder& builder, LayerSheet& layer,
              const std::string& prefix, const Shape& shape, int64_t i) {
  const std::string module = absl::StrCat(prefix, ".layers.", i);
  const bool shares = i >= shape.num_layers - shape.shared_layers;
  layer.window = shape.sliding[static_cast<size_t>(i)] ? shape.window : 0;
  layer.kind = absl::StrCat(
      layer.window > 0 ? "window attention, " : "attention, ",
      shape.experts > 0 ? "experts" : "dense", shares ? ", shared KV" : "");
  layer.vectors = VectorsBefore(shape, i);
  layer.kv_from = shares ? KvSource(shape, layer.window > 0) : -1;
  for (int norm = 0; norm < 4; ++norm) {
    builder.Vector(layer.weights, shape.hidden);
  }
  builder.Vector(layer.weights, 1);  // layer_scalar
  AddAttention(builder, layer, module + ".self_attn", shape, shares);
  AddFfn(builder, layer, module, shape, shares);
  if (shape.layer_input > 0) {
    AddLayerInput(builder, layer, module, shape);
  }
}

}  // namespace

absl::StatusOr<ModelSheet> ReadGemma4(ConfigReader& config) {
  ModelSheet sheet;
  sheet.vocab_size = config.Need("vocab_size", model::kVocabMax);
  sheet.context_length =
      config.Need("max_position_embeddings", model::kContextMax);
  sheet.head_is_embedding = config.FlagOfEither("tie_word_embeddings", true);
  const Shape shape = ReadShape(config, sheet.vocab_size);
  sheet.hidden_size = shape.hidden;
  MILLRACE_RETURN_IF_ERROR(config.status());
  if (shape.shared_layers > 0) {
    for (const bool sliding : {false, true}) {
      const auto first = shape.sliding.end() - shape.shared_layers;
      if (KvSource(shape, sliding) < 0 &&
          std::find(first, shape.sliding.end(), sliding) !=
              shape.sliding.end()) {
        config.Fail("num_kv_shared_layers",
                    "leaves a kind of layer without one that keeps KV");
        return config.status();
      }
    }
  }
  MILLRACE_ASSIGN_OR_RETURN(SheetBuilder builder, SheetBuilder::Create(config));
  const std::string prefix =
      &config.whole() == &config.text() ? "model" : "model.language_model";
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    AddLayer(builder, sheet.layers.emplace_back(), prefix, shape, i);
  }
  AddEnds(builder, sheet, prefix + ".embed_tokens", "lm_head");
  if (shape.layer_input > 0) {
    builder.Vector(sheet.first,
                   shape.layer_input);  // per_layer_projection_norm
  }
  MILLRACE_RETURN_IF_ERROR(builder.status());
  return sheet;
}

}  // namespace millrace::planner
