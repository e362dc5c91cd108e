#include "model/checkpoint/hf_config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "model/checkpoint/hf_rope.h"

namespace millrace::model {
namespace {

struct Family {
  const char* model_type;
  const char* architecture;
};

constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM"},     {"mistral", "MistralForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"}, {"qwen2", "Qwen2ForCausalLM"},
    {"qwen3", "Qwen3ForCausalLM"},     {"qwen3_moe", "Qwen3MoeForCausalLM"},
};

// MistralConfig's own, for files that leave the key out.
constexpr int64_t kMistralWindow = 4096;
constexpr int64_t kQwenMaxWindowLayers = 28;

absl::StatusOr<std::string> FirstArchitecture(const JsonObject& config) {
  const Json* list = config.Find("architectures");
  if (list == nullptr) {
    return std::string();
  }
  if (!list->is_array() ||
      (!list->get_array().empty() && !list->get_array()[0].is_string())) {
    return config.ErrorAt("architectures", "must be a list of names");
  }
  if (list->get_array().empty()) {
    return std::string();
  }
  return std::string(list->get_array()[0].get_string());
}

absl::StatusOr<std::string> ReadFamily(const JsonObject& config) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            config.StringOr("model_type", ""));
  MILLRACE_ASSIGN_OR_RETURN(const std::string architecture,
                            FirstArchitecture(config));
  if (type.empty() && architecture.empty()) {
    return config.ErrorAt("model_type", "is missing");
  }
  for (const Family& family : kFamilies) {
    if (type == family.model_type ||
        (type.empty() && architecture == family.architecture)) {
      return std::string(family.model_type);
    }
  }
  std::string known;
  for (const Family& family : kFamilies) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", family.model_type);
  }
  return WithHint(
      config.ErrorAt(type.empty() ? "architectures" : "model_type",
                     absl::StrCat("the architecture '",
                                  Printable(type.empty() ? architecture : type),
                                  "' is not supported")),
      absl::StrCat("supported are ", known));
}

absl::Status ReadHeads(const JsonObject& config, DecoderConfig& out) {
  MILLRACE_ASSIGN_OR_RETURN(
      out.num_heads, config.Integer("num_attention_heads", 1, kHeadsMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out.num_kv_heads,
      config.IntegerOr("num_key_value_heads", 1, kHeadsMax, out.num_heads));
  if (out.num_heads % out.num_kv_heads != 0) {
    return config.ErrorAt("num_key_value_heads",
                          absl::StrCat("is ", out.num_kv_heads,
                                       ", which does not divide "
                                       "num_attention_heads = ",
                                       out.num_heads));
  }
  if (config.Has("head_dim")) {
    MILLRACE_ASSIGN_OR_RETURN(out.head_dim,
                              config.Integer("head_dim", 1, kHeadDimMax));
    return absl::OkStatus();
  }
  if (out.hidden_size % out.num_heads != 0) {
    return config.ErrorAt("num_attention_heads",
                          absl::StrCat("is ", out.num_heads,
                                       ", which does not divide hidden_size = ",
                                       out.hidden_size));
  }
  out.head_dim = out.hidden_size / out.num_heads;
  return absl::OkStatus();
}

absl::Status ReadSizes(const JsonObject& config, DecoderConfig& out) {
  MILLRACE_ASSIGN_OR_RETURN(out.num_layers,
                            config.Integer("num_hidden_layers", 1, kLayersMax));
  MILLRACE_ASSIGN_OR_RETURN(out.hidden_size,
                            config.Integer("hidden_size", 1, kHiddenMax));
  MILLRACE_ASSIGN_OR_RETURN(
      out.intermediate_size,
      config.Integer("intermediate_size", 1, kIntermediateMax));
  MILLRACE_ASSIGN_OR_RETURN(out.vocab_size,
                            config.Integer("vocab_size", 1, kVocabMax));
  MILLRACE_ASSIGN_OR_RETURN(out.eps,
                            config.NumberOr("rms_norm_eps", 0, 1, 1e-6));
  MILLRACE_ASSIGN_OR_RETURN(const std::string activation,
                            config.StringOr("hidden_act", "silu"));
  if (activation != "silu" && activation != "swish") {
    return config.ErrorAt(
        "hidden_act", absl::StrCat("the activation '", Printable(activation),
                                   "' is not supported; known is silu"));
  }
  return ReadHeads(config, out);
}

absl::Status ReadBiases(const JsonObject& config, DecoderConfig& out) {
  MILLRACE_ASSIGN_OR_RETURN(bool attention,
                            config.BoolOr("attention_bias", false));
  MILLRACE_ASSIGN_OR_RETURN(bool ffn, config.BoolOr("mlp_bias", false));
  // These families do not look at the keys.
  const bool fixed = out.family == "qwen2" || out.family == "mistral";
  attention = attention && !fixed;
  ffn = ffn && (out.family == "llama" || out.family == "smollm3");
  out.qkv_bias = attention || out.family == "qwen2" ? BiasRule::kRequired
                                                    : BiasRule::kNone;
  out.output_bias = attention ? BiasRule::kRequired : BiasRule::kNone;
  out.ffn_bias = ffn ? BiasRule::kRequired : BiasRule::kNone;
  return absl::OkStatus();
}

absl::StatusOr<const boost::json::array*> PerLayerList(const JsonObject& config,
                                                       const char* key,
                                                       int64_t num_layers) {
  const Json* list = config.Find(key);
  if (!list->is_array() ||
      static_cast<int64_t>(list->get_array().size()) != num_layers) {
    return config.ErrorAt(
        key, absl::StrCat("must be a list of num_hidden_layers = ", num_layers,
                          " entries"));
  }
  return &list->get_array();
}

absl::Status ReadRotatedLayers(const JsonObject& config, DecoderConfig& out) {
  out.rotated.assign(static_cast<size_t>(out.num_layers), true);
  if (out.family != "smollm3") {
    return absl::OkStatus();
  }
  if (config.Has("no_rope_layers")) {
    MILLRACE_ASSIGN_OR_RETURN(
        const boost::json::array* list,
        PerLayerList(config, "no_rope_layers", out.num_layers));
    for (size_t i = 0; i < list->size(); ++i) {
      const Json& entry = (*list)[i];
      if (!entry.is_int64() || entry.get_int64() < 0 || entry.get_int64() > 1) {
        return config.ErrorAt("no_rope_layers", "must hold only 0 and 1");
      }
      out.rotated[i] = entry.get_int64() == 1;
    }
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t interval,
      config.IntegerOr("no_rope_layer_interval", 1, kLayersMax, 4));
  for (int64_t i = 0; i < out.num_layers; ++i) {
    out.rotated[static_cast<size_t>(i)] = (i + 1) % interval != 0;
  }
  return absl::OkStatus();
}

// Which window the family would use, 0 for none, before single layers are
// looked at.
absl::StatusOr<int64_t> ReadWindow(const JsonObject& config,
                                   const DecoderConfig& out) {
  if (out.family == "llama") {
    return 0;
  }
  if (out.family == "mistral") {
    const bool absent = !config.raw().contains("sliding_window");
    return config.IntegerOr("sliding_window", 1, kContextMax,
                            absent ? kMistralWindow : 0);
  }
  MILLRACE_ASSIGN_OR_RETURN(const bool used,
                            config.BoolOr("use_sliding_window", false));
  if (!used) {
    return 0;
  }
  return config.IntegerOr("sliding_window", 1, kContextMax, 0);
}

absl::Status ReadWindows(const JsonObject& config, DecoderConfig& out) {
  out.windows.assign(static_cast<size_t>(out.num_layers), 0);
  MILLRACE_ASSIGN_OR_RETURN(const int64_t window, ReadWindow(config, out));
  if (window == 0) {
    return absl::OkStatus();
  }
  if (config.Has("layer_types")) {
    MILLRACE_ASSIGN_OR_RETURN(
        const boost::json::array* list,
        PerLayerList(config, "layer_types", out.num_layers));
    for (size_t i = 0; i < list->size(); ++i) {
      const Json& entry = (*list)[i];
      const bool sliding =
          entry.is_string() && entry.get_string() == "sliding_attention";
      if (!sliding &&
          (!entry.is_string() || entry.get_string() != "full_attention")) {
        return config.ErrorAt(
            "layer_types",
            "must hold only sliding_attention and full_attention");
      }
      out.windows[i] = sliding ? window : 0;
    }
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t first_sliding,
                            config.IntegerOr("max_window_layers", 0, INT32_MAX,
                                             kQwenMaxWindowLayers));
  for (int64_t i = 0; i < out.num_layers; ++i) {
    const size_t at = static_cast<size_t>(i);
    const bool slides = out.family == "mistral"   ? true
                        : out.family == "smollm3" ? !out.rotated[at]
                                                  : i >= first_sliding;
    out.windows[at] = slides ? window : 0;
  }
  return absl::OkStatus();
}

absl::Status ReadDenseLayers(const JsonObject& config, int64_t num_layers,
                             MoeConfig& moe) {
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t step,
      config.IntegerOr("decoder_sparse_step", 1, kLayersMax, 1));
  moe.sparse.resize(static_cast<size_t>(num_layers));
  for (int64_t i = 0; i < num_layers; ++i) {
    moe.sparse[static_cast<size_t>(i)] = (i + 1) % step == 0;
  }
  const Json* dense = config.Find("mlp_only_layers");
  if (dense == nullptr) {
    return absl::OkStatus();
  }
  const absl::Status wrong =
      config.ErrorAt("mlp_only_layers", "must be a list of layer numbers");
  if (!dense->is_array()) {
    return wrong;
  }
  for (const Json& layer : dense->get_array()) {
    if (!layer.is_int64() || layer.get_int64() < 0) {
      return wrong;
    }
    if (layer.get_int64() < num_layers) {
      moe.sparse[static_cast<size_t>(layer.get_int64())] = false;
    }
  }
  return absl::OkStatus();
}

absl::Status ReadMoe(const JsonObject& config, DecoderConfig& out) {
  MoeConfig moe;
  MILLRACE_ASSIGN_OR_RETURN(moe.num_experts,
                            config.Integer("num_experts", 1, kExpertsMax));
  MILLRACE_ASSIGN_OR_RETURN(
      moe.experts_per_token,
      config.Integer("num_experts_per_tok", 1, moe.num_experts));
  MILLRACE_ASSIGN_OR_RETURN(
      moe.intermediate_size,
      config.Integer("moe_intermediate_size", 1, kIntermediateMax));
  // Qwen3MoeConfig's default.
  MILLRACE_ASSIGN_OR_RETURN(moe.renormalise,
                            config.BoolOr("norm_topk_prob", false));
  MILLRACE_RETURN_IF_ERROR(ReadDenseLayers(config, out.num_layers, moe));
  out.moe = std::move(moe);
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> HfFamilies() {
  std::vector<std::string> out;
  for (const Family& family : kFamilies) {
    out.emplace_back(family.model_type);
  }
  return out;
}

absl::StatusOr<kernels::WeightFormat> ReadHfWeightFormat(
    const JsonObject& config) {
  const char* key = config.Has("dtype") ? "dtype" : "torch_dtype";
  MILLRACE_ASSIGN_OR_RETURN(const std::string name,
                            config.StringOr(key, "bfloat16"));
  if (name == "bfloat16") {
    return kernels::WeightFormat::kBf16;
  }
  if (name == "float16") {
    return kernels::WeightFormat::kF16;
  }
  if (name == "float32") {
    return kernels::WeightFormat::kF32;
  }
  return config.ErrorAt(key, absl::StrCat("the weight type '", Printable(name),
                                          "' is not supported"));
}

absl::StatusOr<DecoderConfig> ReadHfConfig(const JsonObject& config,
                                           const std::string& path) {
  DecoderConfig out;
  out.style = NameStyle::kHuggingFace;
  out.source = path;
  MILLRACE_ASSIGN_OR_RETURN(out.family, ReadFamily(config));
  MILLRACE_RETURN_IF_ERROR(ReadSizes(config, out));
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t max_position,
      config.Integer("max_position_embeddings", 1, kContextMax));
  MILLRACE_ASSIGN_OR_RETURN(const HfRope rope,
                            ReadHfRope(config, out.head_dim, max_position));
  out.rope = rope.spec;
  out.context_length = std::min(rope.context_length, kContextMax);
  MILLRACE_RETURN_IF_ERROR(ReadBiases(config, out));
  MILLRACE_RETURN_IF_ERROR(ReadRotatedLayers(config, out));
  MILLRACE_RETURN_IF_ERROR(ReadWindows(config, out));
  out.qk_norm = out.family == "qwen3" || out.family == "qwen3_moe";
  if (config.Has("tie_word_embeddings")) {
    MILLRACE_ASSIGN_OR_RETURN(out.tied,
                              config.BoolOr("tie_word_embeddings", false));
  }
  if (out.family == "qwen3_moe") {
    MILLRACE_RETURN_IF_ERROR(ReadMoe(config, out));
  }
  return out;
}

}  // namespace millrace::model
