#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"
#include "planner/families/family_readers.h"
#include "planner/families/layer_parts.h"

namespace millrace::planner {
namespace {

// Gate, up and down with their biases; packed as MXFP4 where the configuration
// says so, whatever its list of other modules.
void AddExpert(SheetBuilder& builder, PartSheet& part, int64_t hidden,
               int64_t width) {
  const std::pair<int64_t, int64_t> shapes[] = {
      {width, hidden}, {width, hidden}, {hidden, width}};
  for (const auto& [rows, cols] : shapes) {
    if (builder.method() == model::QuantisationMethod::kMxfp4) {
      builder.Packed(part, kernels::WeightFormat::kMxfp4, rows, cols);
    } else {
      builder.Plain(part, rows, cols);
    }
    builder.Vector(part, rows);
  }
}

void AddAttention(SheetBuilder& builder, LayerSheet& layer,
                  const std::string& module, const GroupedShape& shape,
                  bool biases) {
  AddGroupedAttention(builder, layer, module, shape);
  if (biases) {
    builder.Vector(layer.weights, shape.heads * shape.head_dim);
    builder.Vector(layer.weights, shape.kv_heads * shape.head_dim);
    builder.Vector(layer.weights, shape.kv_heads * shape.head_dim);
    builder.Vector(layer.weights, shape.hidden);
  }
  builder.Vector(layer.weights, shape.heads);  // sinks
}

}  // namespace

absl::StatusOr<ModelSheet> ReadGptOss(ConfigReader& config) {
  ModelSheet sheet;
  GroupedShape attention;
  sheet.hidden_size = config.Need("hidden_size", model::kHiddenMax);
  sheet.vocab_size = config.Need("vocab_size", model::kVocabMax);
  sheet.context_length =
      config.Need("max_position_embeddings", model::kContextMax);
  sheet.head_is_embedding = config.Flag("tie_word_embeddings", false);
  attention.hidden = sheet.hidden_size;
  attention.heads = config.Need("num_attention_heads", model::kHeadsMax);
  attention.kv_heads = config.Need("num_key_value_heads", attention.heads);
  attention.head_dim = config.Need("head_dim", model::kHeadDimMax);
  const bool biases = config.Flag("attention_bias", true);
  const int64_t width =
      config.Need("intermediate_size", model::kIntermediateMax);
  const int64_t experts = config.Need("num_local_experts", model::kExpertsMax);
  const int64_t used =
      config.NeedAny({"num_experts_per_tok", "experts_per_token"}, experts);
  const int64_t window = config.Need("sliding_window", model::kContextMax);
  const int64_t num_layers =
      config.Need("num_hidden_layers", model::kLayersMax);
  const std::vector<bool> sliding = config.LayersOfKind(
      "layer_types", num_layers, "sliding_attention", {"full_attention"});
  MILLRACE_RETURN_IF_ERROR(config.status());
  MILLRACE_ASSIGN_OR_RETURN(SheetBuilder builder, SheetBuilder::Create(config));
  for (int64_t i = 0; i < num_layers; ++i) {
    LayerSheet& layer = sheet.layers.emplace_back();
    layer.window = sliding[static_cast<size_t>(i)] ? window : 0;
    layer.kind =
        layer.window > 0 ? "window attention, experts" : "attention, experts";
    builder.Vector(layer.weights, sheet.hidden_size);
    AddAttention(builder, layer, absl::StrCat("model.layers.", i, ".self_attn"),
                 attention, biases);
    builder.Vector(layer.weights, sheet.hidden_size);
    builder.Router(layer.weights, experts, sheet.hidden_size);
    builder.Vector(layer.weights, experts);
    layer.experts = experts;
    layer.experts_used = used;
    AddExpert(builder, layer.expert, sheet.hidden_size, width);
  }
  AddEnds(builder, sheet, "model.embed_tokens", "lm_head");
  MILLRACE_RETURN_IF_ERROR(builder.status());
  return sheet;
}

}  // namespace millrace::planner
