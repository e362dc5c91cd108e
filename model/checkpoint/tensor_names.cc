#include "model/checkpoint/tensor_names.h"

#include "absl/strings/str_cat.h"

namespace millrace::model {
namespace {

struct Names {
  const char* hugging_face;
  const char* gguf;
};

// In the order of LayerPart.
constexpr Names kLayerNames[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.experts.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.up_proj", "ffn_up_exps"},
    {"mlp.experts.gate_up_proj", "ffn_gate_up_exps"},
    {"mlp.experts.down_proj", "ffn_down_exps"},
    {"mlp.switch_mlp.gate_proj", ""},
    {"mlp.switch_mlp.up_proj", ""},
    {"mlp.switch_mlp.down_proj", ""},
};
static_assert(sizeof(kLayerNames) / sizeof(kLayerNames[0]) ==
              static_cast<size_t>(LayerPart::kSwitchDown) + 1);

std::string Stem(NameStyle style, LayerPart part, int64_t layer) {
  const Names& names = kLayerNames[static_cast<size_t>(part)];
  return style == NameStyle::kGguf
             ? absl::StrCat("blk.", layer, ".", names.gguf)
             : absl::StrCat("model.layers.", layer, ".", names.hugging_face);
}

}  // namespace

std::string TensorName(NameStyle style, GlobalPart part) {
  const bool gguf = style == NameStyle::kGguf;
  switch (part) {
    case GlobalPart::kEmbedding:
      return gguf ? "token_embd.weight" : "model.embed_tokens.weight";
    case GlobalPart::kFinalNorm:
      return gguf ? "output_norm.weight" : "model.norm.weight";
    case GlobalPart::kHead:
      return gguf ? "output.weight" : "lm_head.weight";
  }
  return "";
}

std::string TensorName(NameStyle style, LayerPart part, int64_t layer) {
  // Fused experts of Hugging Face files are parameters, not modules: their
  // names have no suffix.
  const bool bare = style == NameStyle::kHuggingFace &&
                    part >= LayerPart::kFusedGate &&
                    part <= LayerPart::kFusedDown;
  return absl::StrCat(Stem(style, part, layer), bare ? "" : ".weight");
}

std::string BiasName(NameStyle style, LayerPart part, int64_t layer) {
  return absl::StrCat(Stem(style, part, layer), ".bias");
}

std::string ExpertName(LayerPart part, int64_t layer, int64_t expert) {
  const char* matrix = part == LayerPart::kGate ? "gate_proj"
                       : part == LayerPart::kUp ? "up_proj"
                                                : "down_proj";
  return absl::StrCat("model.layers.", layer, ".mlp.experts.", expert, ".",
                      matrix, ".weight");
}

}  // namespace millrace::model
