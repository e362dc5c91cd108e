#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"
#include "planner/families/family_readers.h"
#include "planner/families/layer_parts.h"

namespace millrace::planner {
namespace {

constexpr FfnNames kFfnNames = {.gate = "w1", .up = "w3", .down = "w2"};

struct Shape {
  GroupedShape attention;
  std::vector<bool> attends;  // [layers]; else a short convolution
  int64_t taps = 0;
  bool convolution_bias = false;
  int64_t dense_width = 0;
  bool moe = false;
  int64_t dense_layers = 0;  // the first so many have no experts
  int64_t expert_width = 0;
  int64_t experts = 0;
  int64_t experts_used = 0;
};

// LFM2 states a width that its own rule turns into that of the matrices; the
// rule is Llama's: two thirds, times a multiplier, up to a multiple.
int64_t ReadDenseWidth(ConfigReader& config, bool moe) {
  int64_t width = config.NeedAny({"block_ff_dim", "intermediate_size"},
                                 model::kIntermediateMax);
  if (moe || !config.Flag("block_auto_adjust_ff_dim", true)) {
    return width;
  }
  const double multiplier =
      config.NumberOr("block_ffn_dim_multiplier", 1.0 / 64, 64, 1);
  const int64_t multiple = config.Or("block_multiple_of", 1, kRankMax, 256);
  width = static_cast<int64_t>(
      multiplier * std::floor(2.0 * static_cast<double>(width) / 3));
  return std::max<int64_t>(1, (width + multiple - 1) / multiple) * multiple;
}

std::vector<bool> ReadAttentionLayers(ConfigReader& config,
                                      int64_t num_layers) {
  return config.text().Has("layer_types")
             ? config.LayersOfKind("layer_types", num_layers, "full_attention",
                                   {"conv"})
             : config.LayersInList(config.text(), "full_attn_idxs", num_layers,
                                   0);
}

Shape ReadShape(ConfigReader& config, int64_t hidden, int64_t num_layers,
                bool moe) {
  Shape shape;
  shape.attention.hidden = hidden;
  shape.attention.heads = config.Need("num_attention_heads", model::kHeadsMax);
  shape.attention.kv_heads =
      config.Need("num_key_value_heads", shape.attention.heads);
  if (hidden % shape.attention.heads != 0 && config.status().ok()) {
    config.Fail("num_attention_heads", "does not divide hidden_size");
  }
  shape.attention.head_dim = hidden / shape.attention.heads;
  shape.attention.head_norms = true;
  shape.attention.output = "out_proj";
  shape.attends = ReadAttentionLayers(config, num_layers);
  shape.taps = config.Need("conv_L_cache", kTapsMax);
  shape.convolution_bias = config.Flag("conv_bias", false);
  shape.dense_width = ReadDenseWidth(config, moe);
  shape.moe = moe;
  if (moe) {
    shape.dense_layers = config.Or("num_dense_layers", 0, num_layers, 0);
    shape.expert_width =
        config.Need("moe_intermediate_size", model::kIntermediateMax);
    shape.experts = config.Need("num_experts", model::kExpertsMax);
    shape.experts_used = config.Need("num_experts_per_tok", shape.experts);
  }
  return shape;
}

void AddConvolution(SheetBuilder& builder, LayerSheet& layer,
                    const std::string& module, const Shape& shape) {
  const int64_t hidden = shape.attention.hidden;
  builder.Linear(layer.weights, module + ".in_proj", 3 * hidden, hidden);
  builder.Vector(layer.weights, hidden * shape.taps);
  builder.Linear(layer.weights, module + ".out_proj", hidden, hidden);
  if (shape.convolution_bias) {
    builder.Vector(layer.weights, 3 * hidden);
    builder.Vector(layer.weights, hidden);
    builder.Vector(layer.weights, hidden);
  }
  layer.convolution_values = (shape.taps - 1) * hidden;
}

void AddLayer(SheetBuilder& builder, LayerSheet& layer, const Shape& shape,
              int64_t i) {
  const std::string module = absl::StrCat("model.layers.", i);
  const bool attends = shape.attends[static_cast<size_t>(i)];
  const bool moe = shape.moe && i >= shape.dense_layers;
  const int64_t hidden = shape.attention.hidden;
  layer.kind = absl::StrCat(attends ? "attention, " : "convolution, ",
                            moe ? "experts" : "dense");
  builder.Vector(layer.weights, hidden);
  builder.Vector(layer.weights, hidden);
  if (attends) {
    AddGroupedAttention(builder, layer, module + ".self_attn", shape.attention);
  } else {
    AddConvolution(builder, layer, module + ".conv", shape);
  }
  if (!moe) {
    AddGatedFfn(builder, layer.weights, module + ".feed_forward",
                {hidden, shape.dense_width, kFfnNames});
    return;
  }
  builder.Router(layer.weights, shape.experts, hidden);
  builder.F32Vector(layer.weights, shape.experts);  // expert_bias
  layer.experts = shape.experts;
  layer.experts_used = shape.experts_used;
  AddGatedFfn(builder, layer.expert, module + ".feed_forward.experts.0",
              {hidden, shape.expert_width, kFfnNames});
}

}  // namespace

absl::StatusOr<ModelSheet> ReadLfm2(ConfigReader& config) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            config.text().StringOr("model_type", ""));
  ModelSheet sheet;
  sheet.hidden_size = config.Need("hidden_size", model::kHiddenMax);
  sheet.vocab_size = config.Need("vocab_size", model::kVocabMax);
  sheet.context_length =
      config.Need("max_position_embeddings", model::kContextMax);
  sheet.head_is_embedding =
      config.Flag("tie_embedding", config.Flag("tie_word_embeddings", true));
  const int64_t num_layers =
      config.Need("num_hidden_layers", model::kLayersMax);
  const Shape shape =
      ReadShape(config, sheet.hidden_size, num_layers, type == "lfm2_moe");
  MILLRACE_RETURN_IF_ERROR(config.status());
  MILLRACE_ASSIGN_OR_RETURN(SheetBuilder builder, SheetBuilder::Create(config));
  for (int64_t i = 0; i < num_layers; ++i) {
    AddLayer(builder, sheet.layers.emplace_back(), shape, i);
  }
  AddEnds(builder, sheet, "model.embed_tokens", "lm_head");
  MILLRACE_RETURN_IF_ERROR(builder.status());
  return sheet;
}

}  // namespace millrace::planner
