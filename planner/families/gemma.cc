#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/checkpoint/decoder_config.h"
#include "planner/families/family_readers.h"
#include "planner/families/layer_parts.h"

namespace millrace::planner {
namespace {

// What the families' own configuration classes use for keys that published
// files leave out (the text models inside Gemma 3's image models do).
struct Defaults {
  int64_t vocab_size = 0;
  int64_t window = 4096;
  int64_t context = 0;
  int64_t pattern = 0;  // every so many layers sees all positions
};
constexpr Defaults kGemma2 = {256000, 4096, 8192, 2};
constexpr Defaults kGemma3 = {262208, 4096, 131072, 6};
constexpr int64_t kHeads = 8;
constexpr int64_t kKvHeads = 4;
constexpr int64_t kHeadDim = 256;

std::vector<bool> ReadWindowLayers(ConfigReader& config, int64_t num_layers,
                                   int64_t pattern) {
  if (config.text().Has("layer_types")) {
    return config.LayersOfKind("layer_types", num_layers, "sliding_attention",
                               {"full_attention"});
  }
  pattern = config.Or("sliding_window_pattern", 1, model::kLayersMax, pattern);
  std::vector<bool> out(static_cast<size_t>(num_layers));
  for (int64_t i = 0; i < num_layers; ++i) {
    out[static_cast<size_t>(i)] = (i + 1) % pattern != 0;
  }
  return out;
}

void AddLayer(SheetBuilder& builder, LayerSheet& layer,
              const std::string& module, const GroupedShape& attention,
              int64_t width) {
  layer.kind =
      layer.window > 0 ? "window attention, dense" : "attention, dense";
  // Before and behind attention and feed-forward.
  for (int norm = 0; norm < 4; ++norm) {
    builder.Vector(layer.weights, attention.hidden);
  }
  AddGroupedAttention(builder, layer, module + ".self_attn", attention);
  AddGatedFfn(builder, layer.weights, module + ".mlp",
              {attention.hidden, width, {}});
}

}  // namespace

absl::StatusOr<ModelSheet> ReadGemma(ConfigReader& config) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            config.text().StringOr("model_type", ""));
  const Defaults& defaults = type == "gemma2" ? kGemma2 : kGemma3;
  ModelSheet sheet;
  GroupedShape attention;
  sheet.hidden_size = config.Need("hidden_size", model::kHiddenMax);
  const int64_t num_layers =
      config.Need("num_hidden_layers", model::kLayersMax);
  const int64_t width =
      config.Need("intermediate_size", model::kIntermediateMax);
  sheet.vocab_size =
      config.Or("vocab_size", 1, model::kVocabMax, defaults.vocab_size);
  sheet.context_length = config.Or("max_position_embeddings", 1,
                                   model::kContextMax, defaults.context);
  // Tied in all published models, and by default.
  sheet.head_is_embedding = config.FlagOfEither("tie_word_embeddings", true);
  attention.hidden = sheet.hidden_size;
  attention.heads =
      config.Or("num_attention_heads", 1, model::kHeadsMax, kHeads);
  attention.kv_heads =
      config.Or("num_key_value_heads", 1, model::kHeadsMax, kKvHeads);
  attention.head_dim = config.Or("head_dim", 1, model::kHeadDimMax, kHeadDim);
  attention.head_norms = type != "gemma2";
  const int64_t window =
      config.Or("sliding_window", 1, model::kContextMax, defaults.window);
  const std::vector<bool> sliding =
      ReadWindowLayers(config, num_layers, defaults.pattern);
  MILLRACE_RETURN_IF_ERROR(config.status());
  MILLRACE_ASSIGN_OR_RETURN(SheetBuilder builder, SheetBuilder::Create(config));
  const std::string prefix =
      &config.whole() == &config.text() ? "model" : "language_model.model";
  for (int64_t i = 0; i < num_layers; ++i) {
    LayerSheet& layer = sheet.layers.emplace_back();
    layer.window = sliding[static_cast<size_t>(i)] ? window : 0;
    AddLayer(builder, layer, absl::StrCat(prefix, ".layers.", i), attention,
             width);
  }
  AddEnds(builder, sheet, prefix + ".embed_tokens", "lm_head");
  MILLRACE_RETURN_IF_ERROR(builder.status());
  return sheet;
}

}  // namespace millrace::planner
