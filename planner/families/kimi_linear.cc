#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"
#include "planner/families/family_readers.h"
#include "planner/families/layer_parts.h"

namespace millrace::planner {
namespace {

constexpr FfnNames kExpertNames = {.gate = "w1", .up = "w3", .down = "w2"};

struct Shape {
  int64_t hidden = 0;
  std::vector<bool> latent;  // [layers]; else linear attention
  LatentShape attention;
  DeltaShape delta;
  int64_t dense_width = 0;
  int64_t expert_width = 0;
  int64_t experts = 0;
  int64_t experts_used = 0;
  int64_t shared_experts = 0;
  int64_t first_moe_layer = 0;
  int64_t moe_every = 1;
  // Kimi K3: experts work on vectors of this size, 0: of the hidden size.
  int64_t latent_size = 0;
  bool latent_norm = false;
  // Kimi K3: attention residuals bank a vector every so many layers; 0: none.
  int64_t bank_layers = 0;
};

// Layers with latent attention; the two lists must share out the layers.
std::vector<bool> ReadLatentLayers(ConfigReader& config, int64_t num_layers) {
  const JsonObject section = config.Section("linear_attn_config");
  std::vector<bool> latent =
      config.LayersInList(section, "full_attn_layers", num_layers, 1);
  const std::vector<bool> linear =
      config.LayersInList(section, "kda_layers", num_layers, 1);
  for (size_t i = 0; i < latent.size(); ++i) {
    if (latent[i] == linear[i] && config.status().ok()) {
      config.Fail("linear_attn_config.kda_layers",
                  absl::StrCat("layer ", i + 1,
                               " must be in exactly one of "
                               "kda_layers and full_attn_layers"));
    }
  }
  return latent;
}

Shape ReadShape(ConfigReader& config, int64_t hidden, int64_t num_layers) {
  Shape shape;
  shape.hidden = hidden;
  shape.latent = ReadLatentLayers(config, num_layers);
  shape.attention = ReadLatentShape(config, hidden);
  shape.attention.output_gate = config.Flag("mla_use_output_gate", false);
  shape.delta = ReadDeltaShape(config, hidden);
  shape.dense_width = config.Need("intermediate_size", model::kIntermediateMax);
  shape.expert_width =
      config.Need("moe_intermediate_size", model::kIntermediateMax);
  shape.experts = config.Need("num_experts", model::kExpertsMax);
  shape.experts_used = config.NeedAny(
      {"num_experts_per_token", "num_experts_per_tok"}, shape.experts);
  shape.shared_experts =
      config.Or("num_shared_experts", 0, model::kExpertsMax, 0);
  shape.first_moe_layer = config.Or("first_k_dense_replace", 0, num_layers, 0);
  shape.moe_every = config.Or("moe_layer_freq", 1, model::kLayersMax, 1);
  shape.latent_size =
      config.Or("routed_expert_hidden_size", 1, model::kHiddenMax, 0);
  shape.latent_norm = config.Flag("latent_moe_use_norm", false);
  shape.bank_layers = config.Or("attn_res_block_size", 1, num_layers, 0);
  return shape;
}

absl::Status ReadGate(const JsonObject& text, DeltaShape& delta) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject section,
                            text.Object("linear_attn_config"));
  MILLRACE_ASSIGN_OR_RETURN(delta.full_rank_gate,
                            section.BoolOr("use_full_rank_gate", false));
  return absl::OkStatus();
}

void AddMoe(SheetBuilder& builder, LayerSheet& layer, const Shape& shape,
            const std::string& module) {
  PartSheet& part = layer.weights;
  builder.Router(part, shape.experts, shape.hidden);
  builder.F32Vector(part, shape.experts);  // e_score_correction_bias
  if (shape.shared_experts > 0) {
    AddGatedFfn(builder, part, module + ".shared_experts",
                {shape.hidden, shape.shared_experts * shape.expert_width, {}});
  }
  if (shape.latent_size > 0) {
    // Published in BF16, though no pattern of the quantisation excludes them.
    builder.Plain(part, shape.latent_size, shape.hidden);
    builder.Plain(part, shape.hidden, shape.latent_size);
    if (shape.latent_norm) {
      builder.Vector(part, shape.latent_size);
    }
  }
  layer.experts = shape.experts;
  layer.experts_used = shape.experts_used;
  AddGatedFfn(builder, layer.expert, module + ".experts.0",
              {shape.latent_size > 0 ? shape.latent_size : shape.hidden,
               shape.expert_width, kExpertNames});
}

// A norm and a projection to one number, each over the hidden size.
void AddResidualScores(SheetBuilder& builder, PartSheet& part, int64_t hidden) {
  builder.Vector(part, hidden);
  builder.Vector(part, hidden);
}

// Vectors across a cut before layer i: the running sum, and those banked by
// the layers before, one each bank_layers from layer 0 on.
int64_t VectorsBefore(const Shape& shape, int64_t i) {
  return shape.bank_layers == 0
             ? 1
             : 1 + (i + shape.bank_layers - 1) / shape.bank_layers;
}

void AddLayer(SheetBuilder& builder, LayerSheet& layer, const Shape& shape,
              const std::string& prefix, int64_t i) {
  const std::string module = absl::StrCat(prefix, ".layers.", i);
  const bool latent = shape.latent[static_cast<size_t>(i)];
  const bool moe = i >= shape.first_moe_layer && i % shape.moe_every == 0;
  layer.kind =
      absl::StrCat(latent ? "latent attention, " : "linear attention, ",
                   moe ? "experts" : "dense");
  layer.vectors = VectorsBefore(shape, i);
  builder.Vector(layer.weights, shape.hidden);
  builder.Vector(layer.weights, shape.hidden);
  if (shape.bank_layers > 0) {
    AddResidualScores(builder, layer.weights, shape.hidden);  // attention
    AddResidualScores(builder, layer.weights, shape.hidden);  // feed-forward
  }
  if (latent) {
    AddLatentAttention(builder, layer, module + ".self_attn", shape.attention);
  } else {
    AddDeltaAttention(builder, layer, module + ".self_attn", shape.delta);
  }
  if (moe) {
    AddMoe(builder, layer, shape, module + ".block_sparse_moe");
  } else {
    AddGatedFfn(builder, layer.weights, module + ".mlp",
                {shape.hidden, shape.dense_width, {}});
  }
}

}  // namespace

absl::StatusOr<ModelSheet> ReadKimiLinear(ConfigReader& config) {
  ModelSheet sheet;
  sheet.hidden_size = config.Need("hidden_size", model::kHiddenMax);
  sheet.vocab_size = config.Need("vocab_size", model::kVocabMax);
  sheet.context_length = config.NeedAny(
      {"max_position_embeddings", "model_max_length"}, model::kContextMax);
  sheet.head_is_embedding = config.FlagOfEither("tie_word_embeddings", false);
  const int64_t num_layers =
      config.Need("num_hidden_layers", model::kLayersMax);
  Shape shape = ReadShape(config, sheet.hidden_size, num_layers);
  MILLRACE_RETURN_IF_ERROR(config.status());
  MILLRACE_RETURN_IF_ERROR(ReadGate(config.text(), shape.delta));
  MILLRACE_ASSIGN_OR_RETURN(SheetBuilder builder, SheetBuilder::Create(config));
  const bool wrapped = &config.whole() != &config.text();
  const std::string prefix = wrapped ? "language_model.model" : "model";
  for (int64_t i = 0; i < num_layers; ++i) {
    AddLayer(builder, sheet.layers.emplace_back(), shape, prefix, i);
  }
  AddEnds(builder, sheet, prefix + ".embed_tokens", "lm_head");
  if (shape.bank_layers > 0) {
    AddResidualScores(builder, sheet.last, shape.hidden);
  }
  MILLRACE_RETURN_IF_ERROR(builder.status());
  return sheet;
}

}  // namespace millrace::planner
