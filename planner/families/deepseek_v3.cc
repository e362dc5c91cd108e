#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"
#include "planner/families/family_readers.h"
#include "planner/families/layer_parts.h"

namespace millrace::planner {
namespace {

struct Shape {
  LatentShape attention;
  int64_t dense_width = 0;
  int64_t expert_width = 0;
  int64_t experts = 0;
  int64_t experts_used = 0;
  int64_t shared_experts = 0;
  int64_t first_moe_layer = 0;
  int64_t moe_every = 1;
};

Shape ReadShape(ConfigReader& config, int64_t hidden, int64_t num_layers) {
  Shape shape;
  shape.attention = ReadLatentShape(config, hidden);
  shape.dense_width = config.Need("intermediate_size", model::kIntermediateMax);
  shape.expert_width =
      config.Need("moe_intermediate_size", model::kIntermediateMax);
  shape.experts = config.Need("n_routed_experts", model::kExpertsMax);
  shape.experts_used = config.Need("num_experts_per_tok", shape.experts);
  shape.shared_experts =
      config.Or("n_shared_experts", 0, model::kExpertsMax, 0);
  shape.first_moe_layer = config.Or("first_k_dense_replace", 0, num_layers, 0);
  shape.moe_every = config.Or("moe_layer_freq", 1, model::kLayersMax, 1);
  return shape;
}

void AddFfn(SheetBuilder& builder, LayerSheet& layer, const Shape& shape,
            const std::string& module, bool moe) {
  const int64_t hidden = shape.attention.hidden;
  if (!moe) {
    AddGatedFfn(builder, layer.weights, module,
                {hidden, shape.dense_width, {}});
    return;
  }
  builder.Router(layer.weights, shape.experts, hidden);
  builder.F32Vector(layer.weights, shape.experts);  // e_score_correction_bias
  if (shape.shared_experts > 0) {
    AddGatedFfn(builder, layer.weights, module + ".shared_experts",
                {hidden, shape.shared_experts * shape.expert_width, {}});
  }
  layer.experts = shape.experts;
  layer.experts_used = shape.experts_used;
  AddGatedFfn(builder, layer.expert, module + ".experts.0",
              {hidden, shape.expert_width, {}});
}

}  // namespace

absl::StatusOr<ModelSheet> ReadDeepseekV3(ConfigReader& config) {
  ModelSheet sheet;
  sheet.hidden_size = config.Need("hidden_size", model::kHiddenMax);
  sheet.vocab_size = config.Need("vocab_size", model::kVocabMax);
  sheet.context_length =
      config.Need("max_position_embeddings", model::kContextMax);
  sheet.head_is_embedding = config.FlagOfEither("tie_word_embeddings", false);
  // Layers for predicting several tokens come behind these and are not loaded.
  const int64_t num_layers =
      config.Need("num_hidden_layers", model::kLayersMax);
  const Shape shape = ReadShape(config, sheet.hidden_size, num_layers);
  MILLRACE_RETURN_IF_ERROR(config.status());
  MILLRACE_ASSIGN_OR_RETURN(SheetBuilder builder, SheetBuilder::Create(config));
  // The vision models around Kimi K2 put the text model under this name.
  const std::string prefix =
      &config.whole() == &config.text() ? "model" : "language_model.model";
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string module = absl::StrCat(prefix, ".layers.", i);
    const bool moe = i >= shape.first_moe_layer && i % shape.moe_every == 0;
    LayerSheet& layer = sheet.layers.emplace_back();
    layer.kind = moe ? "latent attention, experts" : "latent attention, dense";
    builder.Vector(layer.weights, sheet.hidden_size);
    AddLatentAttention(builder, layer, module + ".self_attn", shape.attention);
    builder.Vector(layer.weights, sheet.hidden_size);
    AddFfn(builder, layer, shape, module + ".mlp", moe);
  }
  AddEnds(builder, sheet, prefix + ".embed_tokens", "lm_head");
  MILLRACE_RETURN_IF_ERROR(builder.status());
  return sheet;
}

}  // namespace millrace::planner
